//! Prometheus' text format 0.0.4 (and OpenMetrics' lines, which differ only behind the value):
//! `name{label="value",…} 12.5 [timestamp] [# exemplar]`.

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample<'a> {
    /// The metric.
    pub(super) name: &'a str,
    /// What stands between the braces; empty without any.
    labels: &'a str,
    /// The value: any number, infinite and NaN included.
    pub(super) value: f64,
}

impl<'a> Sample<'a> {
    /// Whether it has the label with this value, which needs no escape.
    pub(super) fn has(&self, label: &str, value: &str) -> bool {
        let mut rest = self.labels;
        while let Some((name, quoted)) = rest.split_once('=') {
            let Some(quoted) = quoted.trim_start().strip_prefix('"') else {
                return false;
            };
            let Some(end) = closing(quoted) else {
                return false;
            };
            if name.trim() == label && &quoted[..end] == value {
                return true;
            }
            rest = quoted[end + 1..].trim_start().trim_start_matches(',');
        }
        false
    }

    /// One line that is neither empty nor a comment; `None` where it is no sample.
    fn of(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' ', '\t'])?;
        let (name, rest) = line.split_at(end);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(inside) => {
                let end = brace(inside)?;
                (&inside[..end], &inside[end + 1..])
            }
            None => ("", rest),
        };
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        is_name(name).then_some(Self {
            name,
            labels,
            value,
        })
    }
}

fn is_name(name: &str) -> bool {
    let digit = name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    !digit
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}

/// Where the quoted text that begins before `text` ends.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|b| {
        let end = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        end
    })
}

/// Where the brace that was opened before `text` closes: one in a quoted value does not count.
fn brace(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let next = at + text[at..].find(['"', '}'])?;
        if text.as_bytes()[next] == b'}' {
            return Some(next);
        }
        at = next + 1 + closing(&text[next + 1..])? + 1;
    }
}

/// Every sample of a page, in its order; `Err` with the number of a line that is none, from 1.
pub(super) fn samples(page: &str) -> impl Iterator<Item = Result<Sample<'_>, usize>> {
    page.lines().enumerate().filter_map(|(at, line)| {
        let line = line.trim();
        let nothing = line.is_empty() || line.starts_with('#');
        (!nothing).then(|| Sample::of(line).ok_or(at + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    fn one(line: &str) -> Option<(&str, f64)> {
        Sample::of(line).map(|s| (s.name, s.value))
    }

    #[test]
    fn lines_of_both_formats_are_read() {
        assert_eq!(one("up 1"), Some(("up", 1.0)));
        assert_eq!(
            one("vllm:x_total{engine=\"0\"} 3 1700000000000"),
            Some(("vllm:x_total", 3.0))
        );
        assert_eq!(
            one("h_bucket{le=\"+Inf\"} 7 # {trace_id=\"a b\"} 0.4"),
            Some(("h_bucket", 7.0))
        );
        assert_eq!(one("g{} 1.5e3"), Some(("g", 1500.0)));
        assert_eq!(one("g +Inf"), Some(("g", f64::INFINITY)));
        assert!(one("g NaN").is_some_and(|(_, v)| v.is_nan()));
    }

    #[test]
    fn braces_commas_and_escaped_quotes_in_a_value_end_nothing() {
        let line = r#"c_total{a="x}\",b=\"1\\",cache_type="semantic", d="e"} 4"#;
        let sample = Sample::of(line).unwrap();
        assert_eq!((sample.name, sample.value), ("c_total", 4.0));
        assert!(sample.has("cache_type", "semantic") && sample.has("d", "e"));
        assert!(!sample.has("b", "1") && !sample.has("cache_type", "direct"));
    }

    #[test]
    fn what_is_no_sample_is_told_with_its_line() {
        let page = "# HELP a b\n\na 1\n<html>\nb{x=\"1} 2\nc{ 3\nd\n9x 4\n";
        let wrong: Vec<usize> = samples(page).filter_map(Result::err).collect();
        assert_eq!(wrong, [4, 5, 6, 7, 8]);
        assert_eq!(samples(page).filter(Result::is_ok).count(), 1);
    }

    /// Any labels, written as the format says, are read as what they are.
    #[test]
    fn random_labels_survive() {
        let mut random = StdRng::seed_from_u64(7);
        let signs = ['a', '"', '\\', '\n', '{', '}', ',', '=', ' ', 'é', '#'];
        for _ in 0..2_000 {
            let count = random.random_range(0..4);
            let values: Vec<String> = (0..count)
                .map(|_| {
                    let length = random.random_range(0..8);
                    (0..length)
                        .map(|_| signs[random.random_range(0..signs.len())])
                        .collect()
                })
                .collect();
            let escape = |v: &String| {
                let text = v.replace('\\', "\\\\").replace('"', "\\\"");
                text.replace('\n', "\\n")
            };
            let labels: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(n, v)| format!("l{n}=\"{}\"", escape(v)))
                .collect();
            let value: f64 = f64::from(random.random_range(-1e6_f32..1e6));
            let page = format!(
                "# TYPE m gauge\nm{{{}}} {value}\nafter 1\n",
                labels.join(",")
            );
            let read: Vec<Sample<'_>> = samples(&page).map(Result::unwrap).collect();
            assert_eq!(read.len(), 2, "{page}");
            assert_eq!((read[0].name, read[0].value), ("m", value), "{page}");
            for (n, v) in values.iter().enumerate() {
                assert!(read[0].has(&format!("l{n}"), &escape(v)), "{page}");
            }
        }
    }

    /// Whatever comes, nothing panics.
    #[test]
    fn random_bytes_are_refused_or_read() {
        let mut random = StdRng::seed_from_u64(11);
        let signs = [
            'm', '{', '}', '"', '\\', '=', ',', ' ', '1', '#', '\n', 'ü', '.',
        ];
        for _ in 0..20_000 {
            let length = random.random_range(0..24);
            let page: String = (0..length)
                .map(|_| signs[random.random_range(0..signs.len())])
                .collect();
            for sample in samples(&page).flatten() {
                let _ = sample.has("m", "1");
            }
        }
    }
}
