//! What one client asks for: which warehouse, customer, items (TPC-C 5.11, 2.4 to 2.8; HammerDB 6.0).

use std::sync::Arc;

use super::names::{CUSTOMERS, DISTRICTS, ITEMS, NAME_BITS, NAME_CONSTANT_LOADED, NAME_LAST};
use super::settings::{Profile, Settings};
use crate::keys::nurand;
use crate::random::{Purpose, Random};

/// `A` of NURand for customers and for items.
const CUSTOMER_BITS: i64 = 1023;
const ITEM_BITS: i64 = 8191;
/// How far a run's constant for last names is from that of the load, without two distances (TPC-C 5.11, 2.1.6.1).
const NAME_DISTANCE: std::ops::RangeInclusive<i64> = 65..=119;
const NAME_DISTANCES_EXCLUDED: [i64; 2] = [96, 112];

/// A client with its home.
#[derive(Debug)]
pub(crate) struct Terminal {
    settings: Arc<Settings>,
    client: i64,
    home: i64,
    district: i64,
    constants: Constants,
}

/// `C` of NURand, the same for all clients of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constants {
    pub name: i64,
    pub customer: i64,
    pub item: i64,
}

/// Who pays, or asks for an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Customer {
    pub warehouse: i64,
    pub district: i64,
    /// Drawn also where the name is asked for, as HammerDB does.
    pub id: i64,
    /// The number of the last name, where it is asked for.
    pub name: Option<i64>,
}

/// One line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub item: i64,
    pub supply: i64,
    pub quantity: i64,
}

impl Terminal {
    pub fn new(settings: Arc<Settings>, seed: u64, client: u32) -> Self {
        let client = i64::from(client);
        let (mut random, clients) = (Random::derived(seed, Purpose::Terminal, client as u32, 0), settings.warehouses);
        let (home, district) = match settings.profile {
            Profile::Hammerdb => (random.between(1, clients), random.between(1, DISTRICTS)),
            // Ten terminals at each warehouse, each with its own district.
            Profile::Spec => (client % clients + 1, client / clients % DISTRICTS + 1),
        };
        Self { constants: Constants::of_run(settings.profile, seed), settings, client, home, district }
    }

    /// Whose laws hold.
    pub fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// `C` of NURand.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The district that this client asks for its stock.
    pub fn district(&self) -> i64 {
        self.district
    }

    /// The client's own, or one of those that it takes in turn.
    pub fn warehouse(&self, random: &mut Random) -> i64 {
        let Settings { warehouses, clients, all_warehouses, .. } = *self.settings;
        if !all_warehouses {
            return self.home;
        }
        let turn = random.between(0, (warehouses + clients - 1) / clients - 1);
        (self.client + turn * clients) % warehouses + 1
    }

    /// A customer who orders.
    pub fn customer_id(&self, random: &mut Random) -> i64 {
        match self.settings.profile {
            Profile::Hammerdb => random.between(1, CUSTOMERS),
            Profile::Spec => nurand(random, CUSTOMER_BITS, 1, CUSTOMERS, self.constants.customer),
        }
    }

    /// A customer of that warehouse and district: 60 of 100 by name.
    pub fn customer(&self, random: &mut Random, warehouse: i64, district: i64) -> Customer {
        let id = self.customer_id(random);
        let by_name = random.between(1, 100) <= 60;
        let name = by_name.then(|| nurand(random, NAME_BITS, 0, NAME_LAST, self.constants.name));
        Customer { warehouse, district, id, name }
    }

    /// A customer who pays at that warehouse and district: 15 of 100 are of another warehouse, where there is one.
    pub fn payer(&self, random: &mut Random, warehouse: i64, district: i64) -> Customer {
        let remote = random.between(1, 100) > 85;
        let other = self.settings.warehouses > 1 && remote;
        let theirs = if other { self.other(random, warehouse) } else { warehouse };
        // HammerDB draws the district of a remote payment also where there is no other warehouse.
        let own = if self.settings.profile == Profile::Spec { !other } else { !remote };
        let of = if own { district } else { random.between(1, DISTRICTS) };
        self.customer(random, theirs, of)
    }

    /// What is paid, in cents.
    pub fn amount_cents(&self, random: &mut Random) -> i64 {
        match self.settings.profile {
            Profile::Hammerdb => random.between(1, 5_000) * 100,
            Profile::Spec => random.between(100, 500_000),
        }
    }

    /// The lines of an order, 5 to 15, as TPC-C draws them: one order of a hundred ends with an item that does not exist. HammerDB
    /// draws lines in the server.
    pub fn lines(&self, random: &mut Random, warehouse: i64, lines: &mut Vec<Line>) {
        lines.clear();
        let count = random.between(5, 15);
        let unwanted = random.between(1, 100) == 1;
        for _ in 0..count {
            let item = nurand(random, ITEM_BITS, 1, ITEMS, self.constants.item);
            let remote = random.between(1, 100) == 1 && self.settings.warehouses > 1;
            let supply = if remote { self.other(random, warehouse) } else { warehouse };
            lines.push(Line { item, supply, quantity: random.between(1, 10) });
        }
        if unwanted && let Some(last) = lines.last_mut() {
            last.item = ITEMS + 1;
        }
    }

    /// A warehouse that is not this one.
    fn other(&self, random: &mut Random, warehouse: i64) -> i64 {
        let drawn = random.between(1, self.settings.warehouses - 1);
        if drawn >= warehouse { drawn + 1 } else { drawn }
    }
}

impl Constants {
    fn of_run(profile: Profile, seed: u64) -> Self {
        if profile == Profile::Hammerdb {
            return Self { name: NAME_CONSTANT_LOADED, customer: 0, item: 0 };
        }
        let mut random = Random::derived(seed, Purpose::Terminal, u32::MAX, 0);
        let distance = loop {
            let drawn = random.between(*NAME_DISTANCE.start(), *NAME_DISTANCE.end());
            if !NAME_DISTANCES_EXCLUDED.contains(&drawn) {
                break drawn;
            }
        };
        let below = random.between(0, 1) == 0;
        let name = if below { NAME_CONSTANT_LOADED - distance } else { NAME_CONSTANT_LOADED + distance };
        Self { name, customer: random.between(0, CUSTOMER_BITS), item: random.between(0, ITEM_BITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Routines;
    use super::*;

    fn terminal(profile: Profile, warehouses: i64, clients: i64, client: u32, all_warehouses: bool) -> Terminal {
        let routines = Routines::Functions;
        let settings = Settings {
            profile,
            routines,
            warehouses,
            clients,
            all_warehouses,
            keying: false,
            names_match: false,
            built: false,
        };
        Terminal::new(Arc::new(settings), 7, client)
    }

    fn share(times: u32, mut of: impl FnMut(&mut Random) -> bool) -> f64 {
        let mut random = Random::new(3);
        f64::from((0..times).filter(|_| of(&mut random)).count() as u32) / f64::from(times)
    }

    #[test]
    fn inputs_are_drawn_by_the_laws_of_the_specification() {
        let one = terminal(Profile::Spec, 5, 4, 0, false);
        // Four standard errors of 100,000 draws of 15 % are 0.45 points, of 60 % 0.62.
        assert!((share(100_000, |random| one.payer(random, 1, 1).warehouse != 1) - 0.15).abs() < 0.0046);
        assert!((share(100_000, |random| one.payer(random, 1, 1).name.is_some()) - 0.60).abs() < 0.0063);
        let mut lines = Vec::new();
        let unwanted = share(100_000, |random| {
            one.lines(random, 2, &mut lines);
            assert!((5..=15).contains(&lines.len()) && lines.iter().all(|line| (1..=5).contains(&line.supply)));
            lines.iter().any(|line| line.item > ITEMS)
        });
        assert!((unwanted - 0.01).abs() < 0.0013, "{unwanted}");
        let (mut all, mut remote) = (0, 0);
        share(20_000, |random| {
            one.lines(random, 2, &mut lines);
            all += lines.len();
            remote += lines.iter().filter(|line| line.supply != 2).count();
            false
        });
        let (all, remote) = (all as f64, remote as f64);
        assert!((remote / all - 0.01).abs() < 4.0 * (0.01 * 0.99 / all).sqrt());
        assert!((all / 20_000.0 - 10.0).abs() < 0.1);
    }

    #[test]
    fn the_constant_of_a_run_is_as_far_from_the_loads_as_it_must_be() {
        for seed in 0..500 {
            let name = Constants::of_run(Profile::Spec, seed).name;
            let distance = (name - NAME_CONSTANT_LOADED).abs();
            assert!((0..=NAME_BITS).contains(&name) && NAME_DISTANCE.contains(&distance), "{name}");
            assert!(!NAME_DISTANCES_EXCLUDED.contains(&distance));
        }
        assert_eq!(Constants::of_run(Profile::Hammerdb, 9).name, NAME_CONSTANT_LOADED);
    }

    #[test]
    fn one_warehouse_has_no_other() {
        for profile in [Profile::Hammerdb, Profile::Spec] {
            let one = terminal(profile, 1, 4, 2, false);
            assert_eq!(share(10_000, |random| one.payer(random, 1, 1).warehouse != 1), 0.0);
        }
    }

    #[test]
    fn clients_share_all_warehouses_between_them() {
        for (warehouses, clients) in [(10, 3), (4, 8), (7, 7)] {
            let mut seen = std::collections::BTreeSet::new();
            for client in 0..clients as u32 {
                let one = terminal(Profile::Hammerdb, warehouses, clients, client, true);
                let mut random = Random::new(1);
                seen.extend((0..200).map(|_| one.warehouse(&mut random)));
            }
            assert_eq!(seen, (1..=warehouses).collect());
        }
        let homes: Vec<i64> = (0..4).map(|client| terminal(Profile::Spec, 3, 4, client, false).home).collect();
        assert_eq!(homes, [1, 2, 3, 1]);
    }
}
