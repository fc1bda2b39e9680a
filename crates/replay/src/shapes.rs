//! What statements took, by their shapes.

use std::collections::HashMap;

use pgdyno_capture::Call;

/// Statements that are told apart in errors and times; the others are one.
pub(crate) const SHAPES_MAX: usize = 5_000;
const OTHERS: &str = "(other statements)";

/// Statements of one shape.
#[derive(Default)]
pub(crate) struct Shape {
    pub calls: u64,
    /// From when they were due to their answers.
    pub response_us: u64,
    /// Those of whose end both sides know how long they took, and that time.
    pub timed: u64,
    pub us: u64,
    pub recorded_us: u64,
}

impl Shape {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.response_us += other.response_us;
        self.timed += other.timed;
        self.us += other.us;
        self.recorded_us = self.recorded_us.saturating_add(other.recorded_us);
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shapes {
    found: Vec<(String, Shape)>,
    by_name: HashMap<String, usize>,
    /// Of each text of the capture's table its place: it comes again, and its shape need not be made again.
    by_number: Vec<Option<u32>>,
}

impl Shapes {
    /// The shape of a call, and its name. `text` is the number of its text in the capture's table, if it is there.
    pub(crate) fn of(&mut self, call: &Call, text: Option<usize>) -> &mut (String, Shape) {
        let known = text.and_then(|text| self.by_number.get(text).copied().flatten());
        let place = known.map_or_else(|| self.make(call, text), |place| place as usize);
        &mut self.found[place]
    }

    fn make(&mut self, call: &Call, text: Option<usize>) -> usize {
        let place = self.named(call.shape());
        if let Some(text) = text {
            if self.by_number.len() <= text {
                self.by_number.resize(text + 1, None);
            }
            self.by_number[text] = u32::try_from(place).ok();
        }
        place
    }

    fn named(&mut self, name: String) -> usize {
        if let Some(place) = self.by_name.get(&name) {
            return *place;
        }
        let name = if self.found.len() < SHAPES_MAX { name } else { OTHERS.to_owned() };
        *self.by_name.entry(name.clone()).or_insert_with(|| {
            self.found.push((name, Shape::default()));
            self.found.len() - 1
        })
    }

    /// Adds what another lane did.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, theirs) in &other.found {
            let place = self.named(name.clone());
            self.found[place].1.add(theirs);
        }
    }

    /// In the order of their names.
    pub(crate) fn sorted(&self) -> Vec<&(String, Shape)> {
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Ending;

    use super::*;
    use crate::testing::call;

    #[test]
    fn statements_of_one_shape_are_one_and_beyond_the_most_all_others_are() {
        let mut shapes = Shapes::default();
        for number in 0..SHAPES_MAX + 10 {
            let one = call(&format!("SELECT {number} FROM t{number}"), Ending::Unknown);
            for text in [None, Some(number), Some(number)] {
                shapes.of(&one, text).1.calls += 1;
            }
        }
        let mut both = Shapes::default();
        both.add(&shapes);
        let found = both.sorted();
        assert_eq!(found.len(), SHAPES_MAX + 1);
        assert_eq!((found[0].0.as_str(), found[0].1.calls), (OTHERS, 30));
        assert!(found[1..].iter().all(|(name, shape)| name.starts_with("SELECT ? FROM t") && shape.calls == 3));
    }
}
