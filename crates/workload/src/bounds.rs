//! What a schedule may ask for: rates that a host can begin, and times that nanoseconds can count.

/// Transactions per second that may be asked of each thread. A thread begins about a million of the cheapest a second; a
/// schedule beyond that only piles up a backlog.
pub const RATE_MAX_PER_S: f64 = 1e6;
/// The longest time of a schedule, or of a part of it, in milliseconds: a thousand days. Sums of some stay far below the 584
/// years that nanoseconds in 64 bits can count.
pub const DURATION_MAX_MS: u64 = 1000 * 86_400_000;

/// A number that no schedule can have.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfBounds {
    /// A stable name of the error: `drive.rate.too_high`.
    pub code: &'static str,
    /// What the number is: `rate_per_s`.
    pub key: &'static str,
    /// The number.
    pub value: f64,
    /// The largest that can be had.
    pub most: f64,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Refuses a rate of all clients together that these threads cannot begin, and what is no rate.
pub fn check_rate(rate_per_s: f64, threads: u32) -> Result<(), OutOfBounds> {
    let (key, most) = ("rate_per_s", RATE_MAX_PER_S * f64::from(threads));
    let refuse = |code, message, remedy| Err(OutOfBounds { code, key, value: rate_per_s, most, message, remedy });
    if !rate_per_s.is_finite() || rate_per_s < 0.0 {
        let message = format!("the rate {rate_per_s} is negative or no number");
        return refuse("drive.rate.no_number", message, "give a positive rate".to_owned());
    }
    if rate_per_s > most {
        let message = format!("{rate_per_s:e} transactions a second are more than can be begun");
        let remedy = format!("ask for {most} a second at most: {RATE_MAX_PER_S} for each thread that serves clients");
        return refuse("drive.rate.too_high", message, remedy);
    }
    Ok(())
}

/// Refuses a time that is too long for a schedule, and what is no time.
pub fn check_time(key: &'static str, ms: f64) -> Result<(), OutOfBounds> {
    let most = DURATION_MAX_MS as f64;
    let refuse = |code, message, remedy| Err(OutOfBounds { code, key, value: ms, most, message, remedy });
    if !ms.is_finite() || ms < 0.0 {
        let message = format!("{key} is {ms}, which is negative or no number");
        return refuse("drive.time.no_number", message, "give a positive time".to_owned());
    }
    if ms > most {
        let message = format!("{key} is {ms:e}, which is longer than a schedule can be");
        return refuse("drive.time.too_long", message, format!("give {DURATION_MAX_MS} ms (1,000 days) at most"));
    }
    Ok(())
}
