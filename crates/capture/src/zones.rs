//! What the names of zones in logs mean, where they may mean several things: decided for all logs of a reading, before the first entry is taken.

use std::collections::BTreeMap;

use crate::account::ZoneTaken;
use crate::entry::Entry;
use crate::time::{Name, SECOND_US, Zone};

/// What is received later than this after it was written tells no zone: all are this far apart, or farther.
const LATE_S: i64 = 25 * 60;
/// Zones are multiples of this ahead of UTC.
const STEP_S: i64 = 15 * 60;
/// A session's first entry that is seen is no later than this after it began, where its time is to tell the zone.
const SESSION_S: i64 = 25 * 60;

/// Decides zones.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    /// By the user.
    given: BTreeMap<Name, i64>,
    decided: BTreeMap<Name, ZoneTaken>,
    /// Names that tell others.
    seen: Vec<Name>,
    /// The one that was last asked for.
    last: Option<(Name, i64)>,
}

impl Zones {
    pub(crate) fn new(given: &BTreeMap<String, i64>) -> Self {
        Self { given: given.iter().map(|(name, offset_s)| (Name::of(name), *offset_s)).collect(), ..Self::default() }
    }

    /// Learns from an entry what it can. Whether there is more to learn.
    pub(crate) fn learn(&mut self, entry: &Entry<'_>) -> bool {
        let (Zone::Unsure(name) | Zone::Telling(name)) = entry.zone else { return false };
        if !self.seen.contains(&name) {
            self.seen.push(name);
        }
        if entry.zone == Zone::Telling(name) || self.decided.contains_key(&name) {
            return false;
        }
        let taken = |(offset_s, by): (i64, &str)| ZoneTaken { offset_s, by: by.to_owned() };
        let found = self.given.get(&name).map(|offset_s| (*offset_s, "given")).or_else(|| evidence(name, entry));
        found.map(|found| self.decided.insert(name, taken(found))).is_none()
    }

    /// Decides what was seen and is not decided, by the names beside it or as UTC.
    pub(crate) fn decide(&mut self) {
        for name in self.seen.clone() {
            self.decide_one(name);
        }
    }

    fn decide_one(&mut self, name: Name) {
        let is_known = name.meanings().next().is_none() && !self.given.contains_key(&name) && is_known(name);
        if self.decided.contains_key(&name) || is_known {
            return;
        }
        let season = self.seen.iter().find_map(|other| name.beside(other));
        let (offset_s, by) = season.map_or((0, "nothing"), |offset_s| (offset_s, "season"));
        self.decided.insert(name, ZoneTaken { offset_s, by: by.to_owned() });
    }

    /// How far the time of an entry is ahead of UTC, beyond what is in it, in microseconds.
    pub(crate) fn ahead_us(&mut self, entry: &Entry<'_>) -> i64 {
        let Zone::Unsure(name) = entry.zone else { return 0 };
        if let Some((_, offset_s)) = self.last.filter(|(last, _)| *last == name) {
            return offset_s * SECOND_US;
        }
        if !self.decided.contains_key(&name) {
            self.learn(entry);
            self.decide_one(name);
        }
        let offset_s = self.decided.get(&name).map_or(0, |taken| taken.offset_s);
        self.last = Some((name, offset_s));
        offset_s * SECOND_US
    }

    /// The same while it is still learned.
    pub(crate) fn ahead_us_so_far(&self, entry: &Entry<'_>) -> i64 {
        let Zone::Unsure(name) = entry.zone else { return 0 };
        self.decided.get(&name).map_or(0, |taken| taken.offset_s * SECOND_US)
    }

    /// What was decided, for the account.
    pub(crate) fn account(&self) -> BTreeMap<String, ZoneTaken> {
        self.decided.iter().map(|(name, taken)| (name.text().into_owned(), taken.clone())).collect()
    }
}

/// Whether a name tells others and is no question itself.
fn is_known(name: Name) -> bool {
    matches!(name.text().as_ref(), "GMT" | "IDT" | "PDT")
}

/// What an entry says of its zone: it was received at a time in UTC, or its session began at one.
fn evidence(name: Name, entry: &Entry<'_>) -> Option<(i64, &'static str)> {
    let choose = |ahead_s: i64, slack_s: i64| {
        let mut meanings = name.meanings().peekable();
        if meanings.peek().is_none() {
            let nearest = (ahead_s + STEP_S / 2).div_euclid(STEP_S) * STEP_S;
            return ((ahead_s - nearest).abs() <= STEP_S / 5 && nearest.abs() <= 15 * 3600).then_some(nearest);
        }
        meanings.find(|meaning| (ahead_s - meaning).abs() <= slack_s)
    };
    if let Some(received_us) = entry.received_us {
        let ahead_s = (entry.time_us - received_us).div_euclid(SECOND_US);
        return choose(ahead_s, LATE_S).map(|offset_s| (offset_s, "received"));
    }
    let (begun, _) = entry.session.as_deref()?.split_once('.')?;
    let begun_s = i64::from_str_radix(begun, 16).ok()?;
    if let Some(begin_us) = entry.session_begin_us {
        let ahead_s = begin_us.div_euclid(SECOND_US) - begun_s;
        return choose(ahead_s, 1)
            .filter(|offset_s| (offset_s - ahead_s).abs() <= 1)
            .map(|offset_s| (offset_s, "session"));
    }
    let ahead_s = entry.time_us.div_euclid(SECOND_US) - begun_s;
    let near = |meaning: &i64| (-2..SESSION_S).contains(&(ahead_s - meaning));
    name.meanings().find(near).map(|offset_s| (offset_s, "session"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::instant;

    fn entry(zone: &str) -> Entry<'static> {
        let text = format!("2026-11-25 12:34:42 {zone}");
        let found = instant(&text).unwrap();
        Entry { time_us: found.us, zone: found.zone, ..Entry::default() }
    }

    fn taken(zones: &mut Zones, entry: &Entry<'_>) -> (i64, String) {
        zones.learn(entry);
        zones.decide();
        let ahead_us = zones.ahead_us(entry);
        (ahead_us / SECOND_US, zones.account().into_values().next_back().map_or(String::new(), |taken| taken.by))
    }

    #[test]
    fn a_name_of_several_places_is_decided_by_what_else_is_known() {
        let utc_us = 1_795_590_282 * SECOND_US; // 07:04:42
        let ist = entry("IST");
        let received = Entry { received_us: Some(utc_us + 90 * SECOND_US), ..ist.clone() };
        assert_eq!(taken(&mut Zones::default(), &received), (19_800, "received".to_owned()));
        let session = Entry { session: Some("6b066a5a.1f".into()), session_begin_us: None, ..ist.clone() };
        let begun = format!("{:x}.1f", utc_us / SECOND_US - 60);
        let session = Entry { session: Some(begun.clone().into()), ..session };
        assert_eq!(taken(&mut Zones::default(), &session), (19_800, "session".to_owned()));
        let begin_us = Some(ist.time_us - 60 * SECOND_US);
        let exact = Entry { session_begin_us: begin_us, ..session };
        assert_eq!(taken(&mut Zones::default(), &exact), (19_800, "session".to_owned()));
        let given = BTreeMap::from([("IST".to_owned(), 3600)]);
        assert_eq!(taken(&mut Zones::new(&given), &received), (3600, "given".to_owned()));
        let mut zones = Zones::default();
        zones.learn(&entry("IDT"));
        assert_eq!(taken(&mut zones, &ist), (7200, "season".to_owned()));
        assert_eq!(taken(&mut Zones::default(), &ist), (0, "nothing".to_owned()));
    }

    #[test]
    fn a_name_of_no_place_is_decided_by_a_time_in_utc_alone() {
        let unknown = entry("XYZ");
        let received = Entry { received_us: Some(1_795_590_285 * SECOND_US), ..unknown.clone() };
        assert_eq!(taken(&mut Zones::default(), &received), (19_800, "received".to_owned()));
        let late = Entry { received_us: Some(1_795_590_782 * SECOND_US), ..unknown.clone() };
        assert_eq!(taken(&mut Zones::default(), &late), (0, "nothing".to_owned()));
        let mut zones = Zones::default();
        assert_eq!(taken(&mut zones, &entry("CET")), (0, String::new()));
    }
}
