//! A quota as a token bucket.

/// What is left of a quota. It is filled evenly, up to one window's worth.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// 0 sets no limit.
    quota: f64,
    /// ns.
    window: f64,
    left: f64,
    at: u64,
}

impl Bucket {
    /// A full one of `quota` in `window` ns; 0 sets no limit.
    pub(crate) fn new(quota: u64, window: f64) -> Self {
        Self {
            quota: quota as f64,
            window,
            left: quota as f64,
            at: 0,
        }
    }

    /// Whether it has so much at `at` ns.
    pub(crate) fn has(&mut self, amount: u64, at: u64) -> bool {
        let windows = at.saturating_sub(self.at) as f64 / self.window;
        self.at = self.at.max(at);
        self.left = (self.left + windows * self.quota).min(self.quota);
        self.quota == 0.0 || self.left >= amount as f64
    }

    /// Takes what it has.
    pub(crate) fn take(&mut self, amount: u64) {
        self.left -= amount as f64;
    }
}
