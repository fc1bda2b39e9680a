//! Which transaction a client runs next, and how long it pauses before.

use crate::arrivals::Think;
use crate::random::{Purpose, Random};
use crate::time::Nanos;

/// A type of transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The name, for its statistics.
    pub name: String,
    /// How often it runs, relative to the others.
    pub weight: u32,
    /// How long a user takes to enter it, before it begins. In a closed loop only.
    pub keying: Think,
    /// How long a user thinks after it. In a closed loop only, and beside the pause that is asked for of all transactions.
    pub think: Think,
}

impl ScriptInfo {
    /// One without pauses.
    pub fn new(name: &str, weight: u32) -> Self {
        Self { name: name.to_owned(), weight, keying: Think::None, think: Think::None }
    }
}

/// How the types of transaction are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// Each is drawn by the weights, whatever was drawn before.
    Drawn,
    /// Each client has a deck with a card for each unit of weight. It takes them in random order, and shuffles when all are gone
    /// (TPC-C 5.11, 5.2.4.2).
    Dealt,
}

/// The types of transaction of a workload, for all its clients.
#[derive(Debug)]
pub(crate) struct Mixture {
    /// The weights, summed up.
    weights: Vec<u64>,
    /// The script of each card, where they are dealt.
    cards: Vec<u32>,
    /// Keying and thinking of each script; empty where no script has any.
    pauses: Vec<(Think, Think)>,
}

impl Mixture {
    /// Pauses take `dilation` times as long as they say.
    ///
    /// # Panics
    /// Without a script of a weight above 0.
    pub(crate) fn new(scripts: &[ScriptInfo], mixing: Mixing, dilation: u32) -> Self {
        let mut total = 0;
        let weights = scripts.iter().map(|script| {
            total += u64::from(script.weight);
            total
        });
        let weights = weights.collect();
        assert!(total > 0, "a workload needs a script of a weight above 0");
        let deck =
            scripts.iter().zip(0..).flat_map(|(script, number)| std::iter::repeat_n(number, script.weight as usize));
        let cards = if mixing == Mixing::Dealt { deck.collect() } else { Vec::new() };
        let slowed = |script: &ScriptInfo| (script.keying.slowed(dilation), script.think.slowed(dilation));
        let pauses: Vec<_> = scripts.iter().map(slowed).collect();
        let none = pauses.iter().all(|both| *both == (Think::None, Think::None));
        Self { weights, cards, pauses: if none { Vec::new() } else { pauses } }
    }
}

/// What one client takes from a [`Mixture`].
#[derive(Debug)]
pub(crate) struct Hand {
    seed: u64,
    client: u32,
    cards: Vec<u32>,
    shuffled: Option<u64>,
}

impl Hand {
    pub(crate) fn new(seed: u64, client: u32) -> Self {
        Self { seed, client, cards: Vec::new(), shuffled: None }
    }

    /// The script of a client's transaction: the same whenever it is asked for.
    pub(crate) fn choose(&mut self, mixture: &Mixture, ordinal: u64) -> u32 {
        if mixture.weights.len() == 1 {
            return 0;
        }
        if mixture.cards.is_empty() {
            let total = mixture.weights[mixture.weights.len() - 1];
            let draw = self.random(ordinal).up_to(total - 1);
            return mixture.weights.partition_point(|&sum| sum <= draw) as u32;
        }
        let deck = mixture.cards.len() as u64;
        let round = ordinal / deck;
        if self.shuffled != Some(round) {
            self.shuffle(mixture, round);
        }
        self.cards[(ordinal % deck) as usize]
    }

    /// How long to wait between the transaction before, if there is one, and this one.
    pub(crate) fn pause_ns(
        &mut self,
        mixture: &Mixture,
        before: Option<u32>,
        ordinal: u64,
        think: &mut Random,
    ) -> Nanos {
        if mixture.pauses.is_empty() {
            return 0;
        }
        let thought = before.map_or(0, |script| mixture.pauses[script as usize].1.ns(think));
        let next = self.choose(mixture, ordinal);
        thought.saturating_add(mixture.pauses[next as usize].0.ns(think))
    }

    /// Puts the cards of a round into its order (Fisher and Yates).
    fn shuffle(&mut self, mixture: &Mixture, round: u64) {
        self.cards.clone_from(&mixture.cards);
        let mut random = self.random(round);
        for last in (1..self.cards.len()).rev() {
            self.cards.swap(last, random.up_to(last as u64) as usize);
        }
        self.shuffled = Some(round);
    }

    fn random(&self, ordinal: u64) -> Random {
        Random::derived(self.seed, Purpose::Mix, self.client, ordinal)
    }
}
