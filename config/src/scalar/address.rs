//! Addresses: where a socket listens, where a connection goes, where an HTTP server is.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::written_as_text;

/// The address on which a listener binds: an IP address and a port, `127.0.0.1:9000` or `[::1]:9000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listen(SocketAddr);

impl Listen {
    /// The socket address to bind.
    #[must_use]
    pub const fn get(self) -> SocketAddr {
        self.0
    }

    /// Whether only this host can connect.
    #[must_use]
    pub fn is_loopback(self) -> bool {
        self.0.ip().is_loopback()
    }

    /// Whether the two cannot both be bound: the same port, and one address that covers the other.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let (a, b) = (self.0, other.0);
        // A wildcard of IPv6 takes the IPv4 port as well on a dual-stack host.
        let covers =
            |wild: IpAddr, ip: IpAddr| wild.is_unspecified() && (wild.is_ipv6() || ip.is_ipv4());
        a.port() == b.port()
            && (a.ip() == b.ip() || covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self(address)
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write an IP address and a port, for example `127.0.0.1:9000` or `[::1]:9000`";
        let address: SocketAddr = text
            .parse()
            .map_err(|_| format!("`{text}` is not an address to listen on; {advice}"))?;
        if address.port() == 0 {
            return Err(format!(
                "`{text}` has port 0, and clients could not know the port; {advice}"
            ));
        }
        Ok(Self(address))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

written_as_text!(Listen, "Listen", "hopscope-listen", "127.0.0.1:9000");

/// Where a connection goes: a host name or IP address, and a port: `vllm-0.vllm:8000`, `10.0.0.7:8000`, `[::1]:8000`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    /// The host: a name to resolve or an IP address, without the brackets of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, 1 to 65535.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The socket address, when the host needs no resolving.
    #[must_use]
    pub fn socket(&self) -> Option<SocketAddr> {
        self.host
            .parse::<IpAddr>()
            .ok()
            .map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Whether a listener on `listen` is what this address reaches on the same host:
    /// loopback by number or as `localhost`, or the very address.
    #[must_use]
    pub fn reaches(&self, listen: Listen) -> bool {
        let (bound, port) = (listen.get().ip(), listen.get().port());
        if port != self.port {
            return false;
        }
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip == bound || (ip.is_loopback() && bound.is_unspecified()),
            Err(_) => self.host == "localhost" && (bound.is_loopback() || bound.is_unspecified()),
        }
    }

    /// Whether the address certainly is this host's loopback.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write host:port, for example `127.0.0.1:8000`, `vllm.default.svc:8000` or `[::1]:8000`";
        let wrong = |what: &str| format!("`{text}` {what}; {advice}");
        if text.contains("://") {
            return Err(wrong(
                "is a URL, but here stands an address without a scheme",
            ));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
        let port: u16 = port
            .parse()
            .map_err(|_| wrong("has no port from 1 to 65535"))?;
        if port == 0 {
            return Err(wrong("has no port from 1 to 65535"));
        }
        let host = match host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(inner) if matches!(inner.parse(), Ok(IpAddr::V6(_))) => inner,
            Some(_) => return Err(wrong("has no IPv6 address between its brackets")),
            None if host.contains(':') => return Err(wrong("is an IPv6 address without brackets")),
            None if is_host(host) => host,
            None => return Err(wrong("has no valid host")),
        };
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

/// Letters, digits, hyphens and underscores between dots; all-numeric names must be IPv4 addresses.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(inner)
    };
    let numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let name = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253
        && if numeric {
            host.parse::<IpAddr>().is_ok()
        } else {
            name.split('.').all(label)
        }
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

written_as_text!(HostPort, "HostPort", "hopscope-host-port", "127.0.0.1:8000");

/// Where an HTTP server is: `http://host:port`, `https://host`, with a path if one is needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    tls: bool,
    authority: HostPort,
    path: String,
}

impl HttpUrl {
    /// Whether the scheme is `https`.
    #[must_use]
    pub const fn tls(&self) -> bool {
        self.tls
    }

    /// Host and port; the port is the scheme's own when the text named none.
    #[must_use]
    pub const fn authority(&self) -> &HostPort {
        &self.authority
    }

    /// The path with its leading slash, without a trailing one; empty when there is none.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write http://host:port or https://host:port";
        let wrong = |what: &str| format!("`{text}` {what}; {advice}");
        let (tls, rest) = if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else {
            return Err(wrong("is not an HTTP address"));
        };
        let (authority, path) = rest
            .find('/')
            .map_or((rest, ""), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return Err(format!(
                "an address must not hold credentials; {advice}, and name the key's variable with `key_env`"
            ));
        }
        if path.contains(['?', '#', ' ']) {
            return Err(wrong("has a query, a fragment or a space"));
        }
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.contains(']'));
        let full = if has_port {
            authority.to_owned()
        } else {
            format!("{authority}:{}", if tls { 443 } else { 80 })
        };
        let authority = full
            .parse()
            .map_err(|error: String| format!("in `{text}`: {error}"))?;
        Ok(Self {
            tls,
            authority,
            path: path.trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}://{}{}",
            if self.tls { "https" } else { "http" },
            self.authority,
            self.path
        )
    }
}

written_as_text!(
    HttpUrl,
    "HttpUrl",
    "hopscope-http-url",
    "http://127.0.0.1:8000"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Listen {
        text.parse().unwrap()
    }

    #[test]
    fn a_wildcard_takes_the_port_of_every_address() {
        assert!(listen("127.0.0.1:9000").overlaps(listen("127.0.0.1:9000")));
        assert!(listen("0.0.0.0:9000").overlaps(listen("127.0.0.1:9000")));
        assert!(listen("127.0.0.1:9000").overlaps(listen("[::]:9000")));
        assert!(!listen("0.0.0.0:9000").overlaps(listen("[::1]:9000")));
        assert!(!listen("127.0.0.1:9000").overlaps(listen("127.0.0.2:9000")));
        assert!(!listen("127.0.0.1:9000").overlaps(listen("127.0.0.1:9001")));
    }

    #[test]
    fn addresses_without_a_usable_port_or_host_are_refused() {
        for text in [
            "localhost:1",
            "127.0.0.1",
            "127.0.0.1:0",
            ":9000",
            "9000",
            "127.0.0.1:70000",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
        for text in [
            "localhost",
            "host:0",
            "host:65536",
            "::1:80",
            "[::g]:80",
            "a b:80",
            "http://h:80",
            ":80",
            "1.2.3:80",
            "a..b:80",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
        for text in [
            "127.0.0.1:80",
            "ftp://h",
            "http://",
            "http://h:x",
            "http://u:p@h",
            "http://h/?a",
            "http://h:80 /",
        ] {
            assert!(text.parse::<HttpUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_print_what_they_read() {
        for text in ["vllm-0.vllm:8000", "10.0.0.7:8000", "[::1]:8000"] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
        assert_eq!(
            "https://api.example"
                .parse::<HttpUrl>()
                .unwrap()
                .to_string(),
            "https://api.example:443"
        );
        assert_eq!(
            "http://[::1]/v1/".parse::<HttpUrl>().unwrap().to_string(),
            "http://[::1]:80/v1"
        );
    }

    #[test]
    fn credentials_in_an_address_are_refused_without_repeating_them() {
        let error = "http://user:hunter2@h:80".parse::<HttpUrl>().unwrap_err();
        assert!(
            !error.contains("hunter2") && error.contains("key_env"),
            "{error}"
        );
    }

    #[test]
    fn a_host_reaches_the_listener_it_names() {
        let to: HostPort = "localhost:9000".parse().unwrap();
        assert!(to.reaches(listen("127.0.0.1:9000")) && to.reaches(listen("0.0.0.0:9000")));
        assert!(!to.reaches(listen("10.0.0.1:9000")) && !to.reaches(listen("127.0.0.1:9001")));
    }
}
