use pgdyno_crash::{Cache, MAGIC, Strata, Stratum, View};

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

/// A cut has a name, and the name gives its content in each build that reads the log. Who changes what is drawn raises the version in
/// [`MAGIC`], by which older logs are refused, and then this figure.
#[test]
fn the_version_of_a_log_is_that_of_what_is_drawn_from_it() {
    let mut making = Making::new(&[Cache::None, Cache::Volatile]);
    for number in 0..60_u8 {
        let request = making.write(number % 2, u64::from(number) % 16, 1 + u64::from(number) % 8, number + 1);
        if number % 3 != 0 {
            making.answer(request);
        }
        if number % 17 == 0 {
            making.flush(1);
        }
    }
    let history = making.history();
    let strata =
        Strata::of(history.log(), &[stratum("a", &[(0, 40_000_000)]), stratum("b", &[(50_000_000, u64::MAX - 1)])]);
    let mut digest = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a
    let mut states = 0;
    for reading in
        ["whole", "prefix-512", "pieces-4096+strict", "pieces-512+units", "whole+flush-ignored-3", "whole+bit-rot"]
    {
        let view = View::new(&history, reading.parse().expect("a reading"), 5);
        for instant in 0..12 {
            let (_, position) = strata.draw(5, instant);
            for state in (0..3).map_while(|number| view.state(position, instant, number, &[])) {
                states += 1;
                for volume in 0..2 {
                    let put = |offset: u64, block: &[u8]| -> Result<(), ()> {
                        for byte in offset.to_le_bytes().iter().chain(block.iter().step_by(512)) {
                            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
                        }
                        Ok(())
                    };
                    state.write(volume, put).expect("it never fails");
                }
            }
        }
    }
    assert!(states > 100, "{states}");
    assert_eq!((MAGIC[7], format!("{digest:016x}").as_str()), (1, "637de1c3bc7e6dda"));
}
