//! What a server answered: the values that a script keeps.

/// The result sets of one statement, written by the host and read by the client; kept and filled again, so that
/// nothing is allocated once it has been as large as it gets.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    sets: Vec<ResultSet>,
    used: usize,
}

/// One result set: its columns, how many rows it had, and the last of them.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    columns: Vec<String>,
    columns_used: usize,
    rows: u64,
    bytes: Vec<u8>,
    cells: Vec<Option<(usize, usize)>>,
}

impl Answer {
    /// Forgets the result sets.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Begins a result set (the host calls it at each row description).
    pub fn begin_set(&mut self) -> &mut ResultSet {
        if self.used == self.sets.len() {
            self.sets.push(ResultSet::default());
        }
        self.used += 1;
        let set = &mut self.sets[self.used - 1];
        set.columns_used = 0;
        set.rows = 0;
        set.bytes.clear();
        set.cells.clear();
        set
    }

    /// The result set that was begun last.
    pub fn last_set(&mut self) -> Option<&mut ResultSet> {
        self.sets[..self.used].last_mut()
    }

    /// The result sets in the server's order.
    pub fn sets(&self) -> &[ResultSet] {
        &self.sets[..self.used]
    }
}

impl ResultSet {
    /// Adds a column.
    pub fn column(&mut self, name: &str) {
        if self.columns_used == self.columns.len() {
            self.columns.push(String::new());
        }
        let column = &mut self.columns[self.columns_used];
        column.clear();
        column.push_str(name);
        self.columns_used += 1;
    }

    /// Begins a row, and forgets the one before.
    pub fn begin_row(&mut self) {
        self.rows += 1;
        self.bytes.clear();
        self.cells.clear();
    }

    /// Adds a value of the row in text form; `None` is NULL.
    pub fn value(&mut self, text: Option<&[u8]>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text.unwrap_or_default());
        self.cells.push(text.map(|_| (begin, self.bytes.len())));
    }

    /// How many rows there were.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The columns and the last row's values (NULL without a row).
    pub fn last_row(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        self.columns[..self.columns_used].iter().enumerate().map(|(index, name)| {
            let cell = self.cells.get(index).copied().flatten();
            (name.as_str(), cell.map(|(begin, end)| &self.bytes[begin..end]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_each_set_is_kept_and_old_ones_are_forgotten() {
        let mut answer = Answer::default();
        for round in 0..2 {
            answer.clear();
            let set = answer.begin_set();
            set.column("a");
            set.column("b");
            for row in 0..3 {
                set.begin_row();
                set.value(Some(format!("{round}{row}").as_bytes()));
                set.value(None);
            }
            answer.begin_set().column("c");
        }
        assert_eq!(answer.sets().len(), 2);
        assert_eq!(answer.sets()[0].rows(), 3);
        assert_eq!(answer.sets()[0].last_row().collect::<Vec<_>>(), [("a", Some("12".as_bytes())), ("b", None)]);
        assert_eq!(answer.sets()[1].last_row().collect::<Vec<_>>(), [("c", None)]);
    }
}
