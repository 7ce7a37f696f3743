use super::*;
use crater_sdk::testing::{NodeSpec, Tester, card, job, node};

fn tester() -> Tester {
    Tester::new(&native(), "{}").unwrap()
}

/// Cards in link groups: the group and free share of each, 300 GB/s within a
/// group and 32 across.
fn grouped(cards: &[(i32, i32)]) -> NodeSpec {
    let rows: Vec<Vec<i32>> = (0..cards.len())
        .map(|a| {
            let to = |b: usize| if cards[a].0 == cards[b].0 { 300 } else { 32 };
            (0..cards.len()).map(|b| if a == b { 0 } else { to(b) }).collect()
        })
        .collect();
    let rows: Vec<&[i32]> = rows.iter().map(Vec::as_slice).collect();
    let add = |n: NodeSpec, c: &(i32, i32)| n.card(card().link_group(c.0).free(c.1));
    cards.iter().fold(node(), add).links(&rows)
}

#[test]
fn a_pair_takes_a_pair_and_leaves_the_four_whole() {
    let free = |group| (group, 1000);
    let both = grouped(&[free(1), free(1), free(1), free(1), free(2), free(2)]);
    assert_eq!(tester().masks(&job().whole(2), std::slice::from_ref(&both)), [0b11_0000]);
    assert_eq!(tester().masks(&job().whole(4), &[both]), [0b00_1111]);
}

#[test]
fn the_node_with_the_better_links_wins_then_the_smaller_group() {
    let free = |group| (group, 1000);
    let split = grouped(&[free(1), (1, 0), free(2), (2, 0)]);
    let four = grouped(&[free(1), free(1), free(1), free(1)]);
    let pair = grouped(&[free(1), free(1), (1, 0), (1, 500)]);
    let nodes = [split, four, pair];
    assert_eq!(tester().scores(&job().whole(2), &nodes), [3_200, 29_998, 30_000]);
    assert_eq!(tester().best(&job().whole(2), &nodes), Some(2));
}

#[test]
fn a_mesh_of_eight_splits_into_its_fours() {
    // The links of an eight-card machine of 2017: two fours, 50 or 25 GB/s
    // within, and one link each across.
    const FAR: i32 = 10;
    let mut links = [[FAR; 8]; 8];
    let pairs =
        [(0, 1, 25), (0, 2, 25), (0, 3, 50), (1, 2, 50), (1, 3, 25), (2, 3, 50), (0, 4, 50)];
    for (a, b, bandwidth) in pairs {
        for (x, y) in [(a, b), (7 - a, 7 - b)] {
            links[x][y] = bandwidth;
            links[y][x] = bandwidth;
        }
    }
    for (i, row) in links.iter_mut().enumerate() {
        row[i] = 0;
    }
    let rows: Vec<&[i32]> = links.iter().map(|row| &row[..]).collect();
    let mesh = (0..8).fold(node(), |n, _| n.card(card().link_group(1))).links(&rows);
    assert_eq!(tester().masks(&job().whole(4), std::slice::from_ref(&mesh)), [0b0000_1111]);
    assert_eq!(tester().scores(&job().whole(4), std::slice::from_ref(&mesh)), [2_496]);
    assert_eq!(tester().scores(&job().whole(2), &[mesh]), [4_994]);
}

#[test]
fn small_jobs_stay_off_large_groups() {
    let cards = [(1, 1000), (1, 1000), (1, 1000), (2, 1000), (3, 400), (3, 900)];
    let shared = grouped(&cards);
    assert_eq!(tester().masks(&job().share(300), std::slice::from_ref(&shared)), [0b01_0000]);
    assert_eq!(tester().masks(&job().share(500), std::slice::from_ref(&shared)), [0b10_0000]);
    // A whole card: the one that is alone.
    assert_eq!(tester().masks(&job().whole(1), &[shared]), [0b00_1000]);
}

#[test]
fn required_links_never_reach_across_groups() {
    let free = |group| (group, 1000);
    let nodes = [grouped(&[free(1), free(2), free(2)]), grouped(&[free(1), free(2)])];
    let required = job().whole(2).set(JOB_NVLINK, 2);
    assert_eq!(tester().masks(&required, &nodes), [0b110, 0]);
    let numa = |n| card().set(CARD_NUMA, n);
    let nodes =
        [node().card(numa(0)).card(numa(1)).card(numa(1)), node().card(numa(-1)).card(numa(-1))];
    assert_eq!(tester().masks(&job().whole(2).set(JOB_NUMA, 2), &nodes), [0b110, 0]);
}
