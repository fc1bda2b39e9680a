//! What statements took, by their shapes.

use std::collections::HashMap;

use pgdyno_capture::{Call, Protocol, shape};

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
        self.recorded_us += other.recorded_us;
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shapes {
    found: Vec<(String, Shape)>,
    by_name: HashMap<String, usize>,
    /// Texts with parameters come again, and their shapes need not be made again.
    by_text: HashMap<String, usize>,
}

impl Shapes {
    /// The shape of a call, and its name.
    pub(crate) fn of(&mut self, call: &Call) -> &mut (String, Shape) {
        let has_parameters = call.protocol != Protocol::Text;
        let known = if has_parameters { self.by_text.get(&call.text).copied() } else { None };
        let place = known.unwrap_or_else(|| {
            let place = self.named(shape(&call.text));
            if has_parameters && self.by_text.len() < SHAPES_MAX {
                self.by_text.insert(call.text.clone(), place);
            }
            place
        });
        &mut self.found[place]
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
            let text = call(&format!("SELECT {number} FROM t{number}"), Ending::Unknown);
            shapes.of(&text).1.calls += 1;
            let prepared = Call { protocol: Protocol::Named, ..text };
            shapes.of(&prepared).1.calls += 1;
            shapes.of(&prepared).1.calls += 1;
        }
        let mut both = Shapes::default();
        both.add(&shapes);
        let found = both.sorted();
        assert_eq!(found.len(), SHAPES_MAX + 1);
        assert_eq!((found[0].0.as_str(), found[0].1.calls), (OTHERS, 30));
        assert!(found[1..].iter().all(|(name, shape)| name.starts_with("SELECT ? FROM t") && shape.calls == 3));
    }
}
