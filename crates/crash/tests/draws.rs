use pgdyno_crash::{Cache, Strata, Stratum};

use crate::made::Making;

fn stratum(name: &str, intervals: &[(u64, u64)]) -> Stratum {
    Stratum { name: name.to_owned(), intervals: intervals.to_vec() }
}

#[test]
fn strata_take_turns_and_instants_are_inside_their_intervals() {
    let mut making = Making::new(&[Cache::None]);
    for _ in 0..100 {
        making.flush(0);
    }
    let ms = 1_000_000;
    let asked = [
        stratum("a", &[(10 * ms, 19 * ms), (50 * ms, 59 * ms)]),
        stratum("nothing happened", &[(30 * ms + 1, 31 * ms - 1)]),
        stratum("b", &[(0, 99 * ms)]),
    ];
    let strata = Strata::of(&making.log(), &asked);
    assert!(!strata.is_empty());
    let mut seen = [false; 101];
    for number in 0..2_000 {
        let (name, position) = strata.draw(7, number);
        assert_eq!((name, position), strata.draw(7, number), "it has a name, and the name gives it again");
        assert_eq!(name, if number % 2 == 0 { "a" } else { "b" });
        assert!(name == "b" || (10..=20).contains(&position) || (50..=60).contains(&position));
        seen[position as usize] = true;
    }
    assert!(seen.iter().all(|one| *one), "each position can be drawn, also after the last event");
    assert!(Strata::of(&Making::new(&[Cache::None]).log(), &asked).is_empty());
}
