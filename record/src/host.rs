//! The machine and the date, as labels of a run. Read from the kernel's own files; what they do
//! not say stays absent.

use crate::clock;
use crate::manifest::Host;

/// This machine.
#[must_use]
pub fn describe() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let field = |text: Option<String>, name: &str| {
        text?.lines().find_map(|line| {
            Some(
                line.strip_prefix(name)?
                    .trim_start_matches([' ', '\t', ':'])
                    .trim()
                    .to_owned(),
            )
        })
    };
    let uname = rustix::system::uname();
    Host {
        name: uname.nodename().to_string_lossy().into_owned(),
        cpu: field(read("/proc/cpuinfo"), "model name"),
        cpus: std::thread::available_parallelism()
            .map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory: field(read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .map(|kib| kib * 1024),
        kernel: Some(uname.release().to_string_lossy().into_owned()),
    }
}

/// The kernel's id of this boot: the monotonic clock begins anew with each.
#[must_use]
pub fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// The wall clock as RFC 3339 in UTC, to the second.
#[must_use]
pub fn now_rfc3339() -> String {
    rfc3339(clock::wall() / 1_000_000_000)
}

/// Seconds since the Unix epoch as RFC 3339 in UTC.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years (H. Hinnant, "chrono-compatible low-level date
    // algorithms", 2014).
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day % 3_600 / 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days_and_centuries() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn this_machine_has_cpus_and_a_kernel() {
        let host = describe();
        assert!(host.cpus > 0 && host.kernel.is_some());
    }
}
