//! Distributions against theory: χ² for keys, Kolmogorov-Smirnov for gaps. Seeds are fixed, so a test passes always or
//! never; the bounds are those of one false alarm in 10,000.

use pgdyno_workload::keys::*;
use pgdyno_workload::*;

const DRAWS: usize = 200_000;

/// The quantile 0.9999 of χ² (Wilson and Hilferty, 1931).
fn chi_square_limit(freedom: usize) -> f64 {
    let k = freedom as f64;
    let z = 3.719;
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

/// Draws and compares counts of the cells 0.. with their probabilities.
fn assert_chi_square(name: &str, probabilities: &[f64], mut draw: impl FnMut(&mut Random) -> usize) {
    let mut random = Random::new(42);
    let mut counts = vec![0u32; probabilities.len()];
    (0..DRAWS).for_each(|_| counts[draw(&mut random)] += 1);
    let total: f64 = probabilities.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "{name}: the theory sums to {total}");
    let cells = counts.iter().zip(probabilities).filter(|(_, p)| **p > 0.0);
    let statistic: f64 = cells
        .map(|(&count, p)| {
            let expected = p * DRAWS as f64;
            assert!(expected >= 5.0, "{name}: a cell of {expected} is too small for the test");
            (f64::from(count) - expected).powi(2) / expected
        })
        .sum();
    let limit = chi_square_limit(probabilities.len() - 1);
    assert!(statistic < limit, "{name}: {statistic} of at most {limit}");
    let impossible: u32 = counts.iter().zip(probabilities).filter(|(_, p)| **p <= 0.0).map(|(count, _)| count).sum();
    assert_eq!(impossible, 0, "{name}: values that cannot be");
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// The law of the mean of n uniform values (Bates; Irwin and Hall, 1927).
fn bates_cdf(n: u32, x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0) * f64::from(n);
    let (mut sum, mut choose, mut factorial) = (0.0, 1.0, 1.0);
    for k in 0..=n {
        if f64::from(k) < x {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * choose * (x - f64::from(k)).powi(n as i32);
        }
        choose *= f64::from(n - k) / f64::from(k + 1);
        factorial *= f64::from(k.max(1));
    }
    sum / factorial
}

fn cells(count: usize, cdf: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..count).map(|i| cdf((i + 1) as f64 / count as f64) - cdf(i as f64 / count as f64)).collect()
}

#[test]
fn uniform_values_are_uniform_in_ranges_of_any_size() {
    for size in [2usize, 7, 100] {
        let even = vec![1.0 / size as f64; size];
        assert_chi_square("uniform", &even, |random| (random.between(-3, size as i64 - 4) + 3) as usize);
    }
    let mut random = Random::new(1);
    let wide = (0..1000).map(|_| random.between(i64::MIN, i64::MAX)).filter(|value| *value < 0).count();
    assert!((400..600).contains(&wide), "{wide} of 1000 below zero");
}

#[test]
fn exponential_keys_fall_as_pgbench_says() {
    let decay = 4.0;
    let law = cells(50, |x| (1.0 - libm::exp(-decay * x)) / (1.0 - libm::exp(-decay)));
    assert_chi_square("exponential", &law, |random| exponential(random, 1, 50, decay) as usize - 1);
}

#[test]
fn gaussian_keys_are_a_cut_normal_law() {
    let width = 3.0;
    let mass = normal_cdf(width) - normal_cdf(-width);
    let law = cells(40, |x| (normal_cdf(width * (2.0 * x - 1.0)) - normal_cdf(-width)) / mass);
    assert_chi_square("gaussian", &law, |random| gaussian(random, 1, 40, width) as usize - 1);
}

#[test]
fn zipfian_keys_follow_zipf_for_exponents_below_at_and_above_one() {
    for exponent in [0.5, 0.99, 1.0, 1.001, 1.5, 2.5] {
        let weights: Vec<f64> = (1..=60).map(|k| libm::pow(f64::from(k), -exponent)).collect();
        let total: f64 = weights.iter().sum();
        let law: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        let zipf = Zipf::new(60, exponent);
        assert_chi_square(&format!("zipf {exponent}"), &law, |random| zipf.draw(random) as usize - 1);
    }
    assert_eq!(Zipf::new(1, 1.2).draw(&mut Random::new(3)), 1);
}

#[test]
fn nurand_has_the_law_of_its_definition() {
    let (a, min, max, c) = (7, 1, 20, 3);
    let mut law = vec![0.0; 20];
    for high in 0..=a {
        for low in min..=max {
            law[(((high | low) + c) % (max - min + 1)) as usize] += 1.0 / ((a + 1) * (max - min + 1)) as f64;
        }
    }
    assert_chi_square("nurand", &law, |random| (nurand(random, a, min, max, c) - min) as usize);
}

#[test]
fn special_keys_have_the_narrow_band_that_sysbench_really_has() {
    // A table of 100,001 rows, so that the range is 100,000: the band is [0.495, 0.505], and of it the part from
    // 0.4975 on, because the value that chose the band is at least 1/4. Cells of 0.25 %.
    let band = |x: f64| ((x - 0.4975) / 0.0075).clamp(0.0, 1.0);
    let law = cells(400, |x| 0.25 * bates_cdf(12, x) + 0.75 * band(x));
    // The bell's ends are too thin for cells of their own.
    let (low, high) = (100, 300);
    let mut merged = vec![law[..low].iter().sum::<f64>()];
    merged.extend_from_slice(&law[low..high]);
    merged.push(law[high..].iter().sum());
    assert_chi_square("special", &merged, |random| {
        let offset = SysbenchKeys::Special.draw(random, 1, 100_001) - 1;
        ((offset as usize / 250).clamp(low - 1, high)) - (low - 1)
    });
}

#[test]
fn special_keys_follow_their_settings() {
    let shape = SysbenchShape { iterations: 3, band_percent: 10, band_draws_percent: 50, pareto_h: 0.2 };
    // The value that chose the band is at least 1/2, so half of the band gets nothing.
    let band = |x: f64| ((x - 0.5) / 0.05).clamp(0.0, 1.0);
    let law = cells(100, |x| 0.5 * bates_cdf(3, x) + 0.5 * band(x));
    let (low, high) = (10, 90);
    let mut merged = vec![law[..low].iter().sum::<f64>()];
    merged.extend_from_slice(&law[low..high]);
    merged.push(law[high..].iter().sum());
    assert_chi_square("special", &merged, |random| {
        let offset = SysbenchKeys::Special.draw_shaped(&shape, random, 1, 1_000_001) - 1;
        ((offset as usize / 10_000).clamp(low - 1, high)) - (low - 1)
    });
}

#[test]
fn sysbench_pareto_gives_eighty_percent_of_draws_to_twenty_percent_of_rows() {
    let power = libm::log(0.2) / libm::log(0.8);
    let law = cells(20, |x| libm::pow(x, 1.0 / power));
    assert_chi_square("pareto", &law, |random| SysbenchKeys::Pareto.draw(random, 1, 20) as usize - 1);
    assert!((law[..4].iter().sum::<f64>() - 0.8).abs() < 0.001);
    let bell = cells(12, |x| bates_cdf(12, x));
    let mut merged = vec![bell[..3].iter().sum::<f64>()];
    merged.extend_from_slice(&bell[3..9]);
    merged.push(bell[9..].iter().sum());
    assert_chi_square("gaussian of sysbench", &merged, |random| {
        (SysbenchKeys::Gaussian.draw(random, 1, 1200) as usize - 1).div_euclid(100).clamp(2, 9) - 2
    });
}

#[test]
fn permutations_are_permutations() {
    for (size, seed) in [(1, 0), (2, 1), (1000, 5), (1024, -9)] {
        let mut seen: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..size).collect::<Vec<_>>());
    }
}

/// The greatest distance between the law of `values`, each of `[0, 1)`, and the uniform one, times √n.
fn kolmogorov(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().map(|(i, x)| (x - i as f64 / n).abs().max(((i + 1) as f64 / n - x).abs()));
    distance.fold(0.0, f64::max) * n.sqrt()
}

/// The quantile 0.9999 of Kolmogorov's law: √(ln(2/0.0001)/2).
const KOLMOGOROV_LIMIT: f64 = 2.225;

fn times(pattern: Pattern, count: usize) -> Vec<f64> {
    let mut arrivals = Arrivals::new(pattern, 11, 0);
    let next = |_| match arrivals.claim(u64::MAX / 2) {
        Claim::Begin(at) => at as f64 / 1e9,
        other => panic!("{other:?}"),
    };
    (0..count).map(next).collect()
}

#[test]
fn poisson_gaps_are_exponential_and_forget() {
    let segments = vec![Segment::constant(1_000_000_000, 5_000.0)];
    let times = times(Pattern::Open { spacing: Spacing::Poisson, segments }, 20_001);
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let statistic = kolmogorov(gaps.iter().map(|gap| 1.0 - libm::exp(-gap * 5_000.0)).collect());
    assert!(statistic < KOLMOGOROV_LIMIT, "{statistic}");
    // Neighbours are independent: their correlation is normal with deviation 1/√n.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let covariance: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let variance: f64 = gaps.iter().map(|gap| (gap - mean).powi(2)).sum();
    assert!((covariance / variance).abs() * (gaps.len() as f64).sqrt() < 3.9);
}

#[test]
fn a_ramp_of_a_poisson_schedule_has_the_ramp_s_law() {
    let segments = vec![Segment { duration_ns: 10_000_000_000, rate_begin_per_s: 0.0, rate_end_per_s: 2_000.0 }];
    // Ten thousand are expected within the ramp; 9,000 are in it surely.
    let times = times(Pattern::Open { spacing: Spacing::Poisson, segments }, 9_000);
    let end = times[8_999];
    // Given the last one, the others are spread by the integral of the rate: t².
    let statistic = kolmogorov(times[..8_999].iter().map(|t| (t / end).powi(2)).collect());
    assert!(statistic < KOLMOGOROV_LIMIT, "{statistic}");
}

#[test]
fn normal_values_are_normal() {
    let mut random = Random::new(5);
    let statistic = kolmogorov((0..50_000).map(|_| normal_cdf(random.normal())).collect());
    assert!(statistic < KOLMOGOROV_LIMIT, "{statistic}");
}
