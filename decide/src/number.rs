//! Numbers as they are shown, alike in every language.

/// A duration given in nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    let size = ns.abs();
    let (value, unit) = match () {
        () if size >= 1e9 => (ns / 1e9, "s"),
        () if size >= 1e6 => (ns / 1e6, "ms"),
        () => (ns / 1e3, "µs"),
    };
    format!("{} {unit}", digits(value))
}

/// US dollars, as a bill or as a price.
pub(crate) fn money(dollars: f64) -> String {
    if dollars.abs() < 1000.0 {
        return format!("${dollars:.2}");
    }
    let whole = format!("{:.0}", dollars.abs());
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if dollars < 0.0 { "−" } else { "" };
    format!("{sign}${grouped}")
}

/// A share of one.
pub(crate) fn share(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Of a second.
pub(crate) fn rate(rate: f64) -> String {
    format!("{}/s", digits(rate))
}

pub(crate) fn bytes(bytes: f64) -> String {
    match bytes >= 1e9 {
        true => format!("{} GB", digits(bytes / 1e9)),
        false => format!("{} MB", digits(bytes / 1e6)),
    }
}

/// Three digits that count, and no more; large numbers whole.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    let text = match () {
        () if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        () if size >= 10.0 => format!("{value:.1}"),
        () if size >= 1.0 => format!("{value:.2}"),
        () => {
            let behind = (-size.log10()).ceil().clamp(0.0, 12.0) as usize + 2;
            format!("{value:.behind$}")
        }
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(time(1_234_567.0), "1.23 ms");
        assert_eq!(time(-250.0), "-0.25 µs");
        assert_eq!(time(12_300_000_000.0), "12.3 s");
        assert_eq!(money(1_234_567.4), "$1,234,567");
        assert_eq!(money(12.5), "$12.50");
        assert_eq!(money(-1234.0), "−$1,234");
        assert_eq!(share(0.0123), "1.23 %");
        assert_eq!(share(0.00012345), "0.0123 %");
        assert_eq!(rate(0.05), "0.05/s");
        assert_eq!(digits(0.0), "0");
        assert_eq!(bytes(3_300_000_000.0), "3.3 GB");
    }
}
