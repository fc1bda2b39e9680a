//! Credits that are saved up over hours and spent in a burst: I/O credits (gp2), throughput credits (st1, sc1), both
//! (Azure's small Premium SSD).
//!
//! One bucket beside the limit of the burst. It is filled at the baseline rate and every request takes from it, so that at
//! the baseline its level stands still, above it falls by the difference, and once it is empty what arrives is the
//! baseline: "spend = IOPS used - baseline" in one rule (Amazon EC2 user guide of 2023, "General Purpose SSD volumes").

use crate::bucket::TokenBucket;
use crate::io::Nanos;
use crate::params::CreditParams;

/// Grants what credits pay for: I/O units of a limit on IOPS, bytes of one on throughput.
#[derive(Clone, Debug)]
pub struct BurstCredit {
    credits: Option<TokenBucket>,
    withheld: Option<Withheld>,
}

/// The baseline, which is all that there is until an instant, whatever the balance.
#[derive(Clone, Debug)]
struct Withheld {
    baseline: TokenBucket,
    request: u64,
    until: Nanos,
}

impl BurstCredit {
    /// With what the parameters say is there at first, which is at `now`, or without credits.
    pub fn new(params: Option<CreditParams>, now: Nanos) -> Self {
        Self { credits: params.map(|params| TokenBucket::credits(params, now)), withheld: None }
    }

    /// Earns and keeps otherwise from `now` on. The balance stays, up to what can be kept; a volume that had no credits
    /// begins with what it would have when new.
    pub fn change(&mut self, params: Option<CreditParams>, now: Nanos) {
        let balance = self.balance(now);
        let withheld = self.withheld.take();
        *self =
            Self::new(params.map(|params| CreditParams { initial: balance.unwrap_or(params.initial), ..params }), now);
        if let Some(Withheld { request, until, .. }) = withheld {
            self.withhold(until, request, now);
        }
    }

    /// Gives the baseline alone from `now` until `until`, or longer if that was so already; what is not spent is still earned. A
    /// request costs up to `request`.
    pub fn withhold(&mut self, until: Nanos, request: u64, now: Nanos) {
        match (&mut self.withheld, &self.credits) {
            (Some(withheld), _) if now < withheld.until => withheld.until = withheld.until.max(until),
            (_, Some(credits)) => {
                self.withheld = Some(Withheld { baseline: credits.keeping_none(request, now), request, until });
            }
            (_, None) => {}
        }
    }

    /// When `cost` can be paid, not before `now`.
    pub fn ready_at(&self, cost: u64, now: Nanos) -> Nanos {
        let paid = self.credits.as_ref().map_or(now, |bucket| bucket.ready_at(cost, now));
        match &self.withheld {
            Some(Withheld { baseline, until, .. }) if now < *until => {
                paid.max(baseline.ready_at(cost, now).min(*until))
            }
            _ => paid,
        }
    }

    /// Pays `cost` at `now`.
    pub fn charge(&mut self, cost: u64, now: Nanos) {
        if let Some(bucket) = &mut self.credits {
            bucket.take(cost, now);
        }
        if let Some(withheld) = &mut self.withheld
            && now < withheld.until
        {
            withheld.baseline.take(cost, now);
        }
    }

    /// Credits at `now`; `None` where there are none to have.
    pub fn balance(&self, now: Nanos) -> Option<u64> {
        self.credits.as_ref().map(|bucket| u64::try_from(bucket.tokens(now)).unwrap_or(0))
    }

    /// The balance in parts per million of the most that is kept.
    pub fn balance_ppm(&self, now: Nanos) -> Option<u32> {
        self.credits.as_ref().map(|bucket| bucket.level_ppm(now))
    }
}
