//! What must hold between the parts of a chain.

use super::{Chain, ChainKind, Gateway, Position, ProcessMatch, TapLimits, TapPoint, Upstream};
use crate::load::{Form, Report};
use crate::names;

impl Form for Chain {
    const NAME: &'static str = "chain";

    fn check(&self, report: &mut Report<'_>) {
        names::check(report, "name", &self.name);
        self.check_parts(report);
        self.check_address(report);
        self.check_taps(report);
        self.check_listeners(report);
        self.check_entry(report);
        self.check_headers(report);
        super::api::check(self, report);
        super::scrape::check(&self.scrape, report);
        if let Some(gateway) = &self.gateway {
            check_gateway(gateway, report);
        }
    }
}

impl Chain {
    fn check_parts(&self, report: &mut Report<'_>) {
        let kind = self.kind.as_str();
        let measured = !self.kind.is_control() || self.kind == ChainKind::Untapped;
        if measured && self.gateway.is_none() {
            report.add(
                "kind",
                format!(
                    "a chain of kind `{kind}` lacks `gateway`; say which component stands in it"
                ),
            );
        }
        if !measured && self.gateway.is_some() {
            report.add(
                "gateway",
                format!("a chain of kind `{kind}` has no component; remove `gateway`"),
            );
        }
        if self.kind == ChainKind::Gateway && self.recipe.is_none() {
            report.add("kind", "a chain of kind `gateway` lacks `recipe`; say how the call id survives the component".to_owned());
        }
        if self.kind == ChainKind::Untapped && self.control_of.is_none() {
            report.add("kind", "a chain of kind `untapped` lacks `control_of`; name the chain with taps that it is compared with".to_owned());
        }
        if !self.kind.is_control() && self.control_of.is_some() {
            report.add(
                "control_of",
                format!(
                    "a chain of kind `{kind}` is no control; remove `control_of`, or correct `kind`"
                ),
            );
        }
    }

    fn check_address(&self, report: &mut Report<'_>) {
        let prefix = self.path_prefix.as_deref().unwrap_or_default();
        if !prefix.is_empty()
            && (!prefix.starts_with('/')
                || prefix.ends_with('/')
                || prefix.contains(['?', '#', ' ']))
        {
            report.add("path_prefix", format!("`path_prefix` is `{prefix}`; begin it with `/` and end it without, for example `/v1`, or leave it empty"));
        }
        if !self.entry.path().is_empty() {
            report.add(
                "entry",
                format!(
                    "`entry` has the path `{}`; move it to `path_prefix`",
                    self.entry.path()
                ),
            );
        }
        if self.model.trim().is_empty() {
            report.add(
                "model",
                "`model` is empty; write the model's name as the entry knows it".to_owned(),
            );
        }
    }

    fn check_taps(&self, report: &mut Report<'_>) {
        names::unique(
            report,
            self.taps
                .iter()
                .enumerate()
                .map(|(at, tap)| (format!("taps[{at}].name"), tap.name.as_str())),
        );
        let count = |position| self.taps_at(position).count();
        let (outer, inner) = (count(Position::Outer), count(Position::Inner));
        let wanted = match self.kind {
            ChainKind::Gateway => (
                outer == 1 && inner >= 1,
                "one outer tap and at least one inner tap",
            ),
            ChainKind::Untapped => (self.taps.is_empty(), "no tap"),
            ChainKind::Direct | ChainKind::Service => (
                outer == 1 && self.taps.len() == 1,
                "one outer tap and no other",
            ),
            ChainKind::Loop | ChainKind::Relay => (
                outer == 1 && inner == 1 && self.taps.len() == 2,
                "one outer tap and one inner tap",
            ),
        };
        if !wanted.0 {
            let (kind, all) = (self.kind.as_str(), self.taps.len());
            report.add("taps", format!("a chain of kind `{kind}` has {}, but this one has {all} ({outer} outer, {inner} inner)", wanted.1));
        }
        for (at, tap) in self.taps.iter().enumerate() {
            check_tap(&format!("taps[{at}]"), tap, report);
        }
        self.check_loop_hops(report);
    }

    /// `loop` joins its taps; every other kind keeps something between them.
    fn check_loop_hops(&self, report: &mut Report<'_>) {
        for (at, tap) in self
            .taps
            .iter()
            .enumerate()
            .filter(|(_, tap)| tap.position == Position::Outer)
        {
            let joined = self.taps_at(Position::Inner).any(|inner| {
                tap.upstream
                    .addresses
                    .iter()
                    .any(|address| address.reaches(inner.listen))
            });
            let at = format!("taps[{at}].upstream.addresses");
            if self.kind == ChainKind::Loop && !joined {
                report.add(&at, "the outer tap of a chain of kind `loop` leads to the inner tap; name the inner tap's `listen`".to_owned());
            }
            if matches!(self.kind, ChainKind::Gateway | ChainKind::Relay) && joined {
                report.add(&at, "the outer tap leads straight to the inner tap and nothing stands between them; name the component's address, or use kind `loop`".to_owned());
            }
        }
    }

    fn check_listeners(&self, report: &mut Report<'_>) {
        for (at, tap) in self.taps.iter().enumerate() {
            let earlier = self
                .taps
                .iter()
                .take(at)
                .position(|other| other.listen.overlaps(tap.listen));
            if let Some(other) = earlier {
                let (name, place) = (
                    &self.taps[other].name,
                    report.location(&format!("taps[{other}].listen")),
                );
                let message = format!(
                    "`{}` is already taken by the tap `{name}` at {place}; choose another port",
                    tap.listen
                );
                report.add(&format!("taps[{at}].listen"), message);
            }
        }
    }

    fn check_entry(&self, report: &mut Report<'_>) {
        let entry = self.entry.authority();
        let mut outer = self.taps_at(Position::Outer);
        // Beyond this host the entry may be a service's name for the tap.
        if entry.is_loopback()
            && !self.taps.is_empty()
            && !outer.any(|tap| entry.reaches(tap.listen))
        {
            report.add(
                "entry",
                format!(
                    "`{}` leads past the outer tap; write the address on which it listens",
                    self.entry
                ),
            );
        }
        let tls = self.taps_at(Position::Outer).any(|tap| tap.tls.is_some());
        if !self.taps.is_empty() && entry.is_loopback() && tls != self.entry.tls() {
            let (is, should) = if tls {
                ("TLS", "https")
            } else {
                ("cleartext", "http")
            };
            report.add(
                "entry",
                format!("the outer tap serves {is}; write `{should}://{entry}`"),
            );
        }
    }

    fn check_headers(&self, report: &mut Report<'_>) {
        const SECRET: [&str; 6] = [
            "authorization",
            "x-api-key",
            "api-key",
            "cookie",
            "proxy-authorization",
            "x-goog-api-key",
        ];
        for (name, value) in &self.request_headers {
            let at = format!("request_headers.{name}");
            if SECRET.contains(&name.as_str()) {
                report.add(&at, format!("`{name}` holds a secret; remove it here and name its variable with `key_env`"));
            } else if name.as_str().starts_with("x-hopscope-") {
                report.add(&at, format!("`{name}` belongs to the taps; remove it"));
            } else if value.bytes().any(|b| b < b' ' || b == 0x7f) {
                report.add(
                    &at,
                    format!("the value of `{name}` has a control character; remove it"),
                );
            }
        }
    }
}

fn check_tap(at: &str, tap: &TapPoint, report: &mut Report<'_>) {
    names::check(report, &format!("{at}.name"), &tap.name);
    if let Some(tls) = &tap.tls {
        report.needs_file(&format!("{at}.tls.cert"), &tls.cert);
        report.needs_file(&format!("{at}.tls.key"), &tls.key);
    }
    if let Some(ca) = tap.upstream.tls.as_ref().and_then(|tls| tls.ca.as_ref()) {
        report.needs_file(&format!("{at}.upstream.tls.ca"), ca);
    }
    check_upstream(&format!("{at}.upstream"), &tap.upstream, report);
    super::sign::check(at, tap, report);
    super::translate::check(at, tap, report);
    if tap
        .upstream
        .addresses
        .iter()
        .any(|address| address.reaches(tap.listen))
    {
        report.add(
            &format!("{at}.upstream.addresses"),
            format!(
                "the tap `{}` leads to itself; name what comes after it",
                tap.name
            ),
        );
    }
    check_limits(&format!("{at}.limits"), &tap.limits, report);
}

fn check_limits(at: &str, limits: &TapLimits, report: &mut Report<'_>) {
    if limits.request_body_max.get() == 0 || limits.event_max.get() == 0 {
        report.add(
            at,
            "a size of 0 would refuse everything; write at least `1B`".to_owned(),
        );
    }
    let times = [
        ("request_head_timeout", limits.request_head_timeout),
        ("response_head_timeout", limits.response_head_timeout),
        ("stream_idle_timeout", limits.stream_idle_timeout),
        ("client_write_timeout", limits.client_write_timeout),
    ];
    for (name, _) in times.iter().filter(|(_, time)| time.is_zero()) {
        report.add(
            &format!("{at}.{name}"),
            format!("`{name}` is 0 and would end every exchange; write a longer time"),
        );
    }
}

fn check_upstream(at: &str, upstream: &Upstream, report: &mut Report<'_>) {
    if upstream.connect_timeout.is_zero() {
        report.add(
            &format!("{at}.connect_timeout"),
            "`connect_timeout` is 0 and would refuse every connection; write a longer time"
                .to_owned(),
        );
    }
    for (index, address) in upstream.addresses.iter().enumerate() {
        if upstream.addresses[..index].contains(address) {
            report.add(
                &format!("{at}.addresses[{index}]"),
                format!("`{address}` is listed twice and would get a double share; remove one"),
            );
        }
    }
}

fn check_gateway(gateway: &Gateway, report: &mut Report<'_>) {
    if gateway.name.trim().is_empty() {
        report.add(
            "gateway.name",
            "`gateway.name` is empty; write the product's name".to_owned(),
        );
    }
    if gateway.overhead_header.is_some() && gateway.overhead_span.is_none() {
        report.add("gateway.overhead_header", "`overhead_span` is missing; say from which instant to which the component's own number reaches".to_owned());
    }
    if gateway
        .cpuset
        .as_deref()
        .is_some_and(|cpus| !is_cpuset(cpus))
    {
        report.add(
            "gateway.cpuset",
            "`cpuset` is no list of CPUs; write for example `0-1,4`".to_owned(),
        );
    }
    for (at, process) in gateway.processes.iter().enumerate() {
        if matches!(process, ProcessMatch::CommandMatch(text) | ProcessMatch::Cgroup(text) if text.trim().is_empty())
        {
            report.add(&format!("gateway.processes[{at}]"), "an empty text would match every process; write a part of the command line or the group's path".to_owned());
        }
    }
}

fn is_cpuset(text: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().ok();
    text.split(',').all(|part| match part.split_once('-') {
        Some((low, high)) => {
            matches!((number(low), number(high)), (Some(low), Some(high)) if low <= high)
        }
        None => number(part).is_some(),
    })
}
