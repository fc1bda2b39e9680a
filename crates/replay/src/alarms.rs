//! When tasks have turns: each at one instant at most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// In the place of an instant where a task has none.
const NONE: u64 = u64::MAX;
/// For each task, and beside that, so many are in the order before those that were taken back are removed from it.
const KEPT_PER_TASK: usize = 2;
const KEPT_BESIDE: usize = 64;

/// See the module. What is taken back stays in the order until it is the first there or too many of its kind are: most of them are due soon, and
/// a statement that waits for a key takes back one of 10 s.
#[derive(Default)]
pub(crate) struct Alarms {
    /// Of each task its instant.
    set: Vec<u64>,
    /// The earliest first. What differs from `set` was taken back.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Alarms {
    /// None yet, for so many tasks.
    pub(crate) fn of(tasks: usize) -> Self {
        Self { set: vec![NONE; tasks], order: BinaryHeap::new() }
    }

    /// Gives a task an instant in the place of the one that it had.
    pub(crate) fn set(&mut self, task: usize, at_ns: u64) {
        self.set[task] = at_ns;
        self.order.push(Reverse((at_ns, task)));
        if self.order.len() > self.set.len() * KEPT_PER_TASK + KEPT_BESIDE {
            self.order.retain(|Reverse((at_ns, task))| self.set[*task] == *at_ns);
        }
    }

    /// Takes the instant of a task back.
    pub(crate) fn unset(&mut self, task: usize) {
        self.set[task] = NONE;
    }

    /// The earliest instant; the end of time if there is none.
    pub(crate) fn next_ns(&mut self) -> u64 {
        while let Some(&Reverse((at_ns, task))) = self.order.peek() {
            if self.set[task] == at_ns {
                return at_ns;
            }
            self.order.pop();
        }
        NONE
    }

    /// Moves the tasks whose instants are before this one to `due`.
    pub(crate) fn take(&mut self, before_ns: u64, due: &mut Vec<usize>) {
        while self.next_ns() < before_ns {
            if let Some(Reverse((_, task))) = self.order.pop() {
                self.unset(task);
                due.push(task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_due_once_at_its_last_instant() {
        let (mut alarms, mut due) = (Alarms::of(3), Vec::new());
        alarms.set(0, 30);
        alarms.set(1, 20);
        alarms.set(2, 10);
        alarms.set(0, 15);
        alarms.unset(2);
        assert_eq!(alarms.next_ns(), 15);
        alarms.take(20, &mut due);
        assert_eq!((due.as_slice(), alarms.next_ns()), ([0].as_slice(), 20));
        // The same instant again, after it was taken back.
        alarms.unset(1);
        alarms.set(1, 20);
        alarms.take(100, &mut due);
        assert_eq!((due.as_slice(), alarms.next_ns()), ([0, 1].as_slice(), NONE));
    }

    #[test]
    fn those_that_were_taken_back_do_not_add_up() {
        let mut alarms = Alarms::of(2);
        alarms.set(1, 5_000_000);
        for number in 0..10_000 {
            alarms.set(0, 10_000_000 + number);
            alarms.unset(0);
        }
        assert!(alarms.order.len() <= 2 * KEPT_PER_TASK + KEPT_BESIDE, "{}", alarms.order.len());
        assert_eq!(alarms.next_ns(), 5_000_000);
    }
}
