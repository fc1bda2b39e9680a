//! When a volume may be modified, and what it says of itself meanwhile.
//!
//! A modification goes through the states modifying, optimizing and completed. Two generations of the rule on how often
//! are published: until 2023 at least six hours from one to the next (Amazon EC2 user guide, June 2023, "Requirements
//! when modifying volumes"); in 2026 at most four in any 24 hours, and none before the one before it is completed (Amazon
//! EC2 API, `ModifyVolume`, November 2026).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::io::Nanos;

const SECOND: Nanos = 1_000_000_000;
const HOUR: Nanos = 3_600 * SECOND;
const DAY: Nanos = 24 * HOUR;
/// In any 24 hours, by the newer rule.
const IN_A_DAY: usize = 4;

/// How often a volume may be modified, by the year of the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrequencyRule {
    /// Six hours from one to the next.
    #[serde(rename = "2023")]
    SixHours,
    /// Four in 24 hours, one after the other.
    #[default]
    #[serde(rename = "2026")]
    FourInADay,
}

/// What a volume says of its last modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModificationState {
    /// It has been asked for.
    Modifying,
    /// The new figures hold, and the provider still moves data.
    Optimizing,
    /// It is over.
    Completed,
}

/// A modification that the rule forbids, and when it will allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSoon {
    /// The rule.
    pub rule: &'static str,
    /// From when on it may be asked for.
    pub allowed_at: Nanos,
}

/// How long the states last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Of the state modifying.
    pub modifying_ns: Nanos,
    /// Of the state optimizing.
    pub optimizing_ns: Nanos,
}

/// The modifications of a volume.
#[derive(Clone, Debug, Default)]
pub struct Modifications {
    /// When each was asked for, the last ones.
    asked: VecDeque<Nanos>,
    optimizing_at: Nanos,
    completed_at: Nanos,
}

impl Modifications {
    /// Whether the rule allows a modification at `now`. Time never goes back.
    ///
    /// # Errors
    /// The rule, and when it allows the next one.
    pub fn allows(&self, now: Nanos, rule: FrequencyRule) -> Result<(), TooSoon> {
        self.refusal(now, rule).map_or(Ok(()), Err)
    }

    /// Counts a modification that the rule allowed and that took effect, as of `now`.
    pub fn count(&mut self, now: Nanos, course: Course) {
        if self.asked.len() == IN_A_DAY {
            self.asked.pop_front();
        }
        self.asked.push_back(now);
        self.optimizing_at = now.saturating_add(course.modifying_ns);
        self.completed_at = self.optimizing_at.saturating_add(course.optimizing_ns);
    }

    /// Of the last modification at `now`; `None` when there was none.
    pub fn state(&self, now: Nanos) -> Option<ModificationState> {
        self.asked.back()?;
        Some(match now {
            now if now < self.optimizing_at => ModificationState::Modifying,
            now if now < self.completed_at => ModificationState::Optimizing,
            _ => ModificationState::Completed,
        })
    }

    /// When the last modification is completed, or was.
    pub fn completed_at(&self) -> Option<Nanos> {
        self.asked.back().map(|_| self.completed_at)
    }

    fn refusal(&self, now: Nanos, rule: FrequencyRule) -> Option<TooSoon> {
        let last = *self.asked.back()?;
        let too_soon = |rule: &'static str, allowed_at| (now < allowed_at).then_some(TooSoon { rule, allowed_at });
        match rule {
            FrequencyRule::SixHours => {
                too_soon("a volume is modified at most once in 6 hours (rule of 2023)", last.saturating_add(6 * HOUR))
            }
            FrequencyRule::FourInADay => {
                let oldest = self.asked.front().filter(|_| self.asked.len() == IN_A_DAY);
                let day = oldest.and_then(|oldest| {
                    let rule = "a volume is modified at most four times in 24 hours (rule of 2026)";
                    too_soon(rule, oldest.saturating_add(DAY))
                });
                let rule = "a volume is modified when its last modification is completed (rule of 2026)";
                day.or_else(|| too_soon(rule, self.completed_at))
            }
        }
    }
}
