//! In the terminal and as JSON.

use crate::sample;
use crater_sim::report::{Cell, Figures, Report, Text};
use expect_test::expect;

#[test]
fn a_table_has_its_figures_in_line() {
    let report = Report::new("Yardstick", "crater simulate yardstick").with(sample::published());
    expect![[r#"
        Yardstick

        $ crater simulate yardstick

        Unallocated GPU at 100 % arrived
         policy         unallocated (%)   published (%)   seeds   decisions (1/s)
        ──────────────────────────────────────────────────────────────────────────
         FGD                       4.76            4.77      10           301,234
         BestFit                   7.19            7.14      10         1,152,000
         Random                   13.46           13.70      10               980
         shadow-price              4.00                      10           250,000
        Means over the seeds 42 to 51; the published means are of Weng, Yang et al.
    "#]]
    .assert_eq(&report.text(100));
}

#[test]
fn a_chart_is_a_table_of_some_of_its_points() {
    let report = Report::new("Charts", "").with(sample::steps()).with(sample::bars());
    expect![[r#"
        Charts

        Jobs waiting while the policy is swapped
         Time since start (h)   training   inference
        ─────────────────────────────────────────────
                          0.0          0           0
                          0.5         90          25
                          1.0        193          53
                          1.6        330          90
                          2.1        316          86
                          2.6        248          68
                          3.2        181          49
                          3.7        341          93
                          4.2        477         130
                          4.8        468         128
                          5.3        343          94
                          5.9        289          79
        12 of 60 points; the JSON has all.
          at 2 h: binpack → fgd
          at 4.25 h: fgd → shadow-price 0.3.1

        Mean waiting time by queue
         Queue                                   binpack (min)   fgd (min)
        ───────────────────────────────────────────────────────────────────
         training                                        14.20       11.90
         inference                                        0.40        0.35
         offline                                         55.00       61.25
         large language models of department A           21.00       18.50
    "#]]
    .assert_eq(&report.text(80));
}

#[test]
fn figures_and_paragraphs() {
    let figures = Figures::new("At a glance")
        .with("Unallocated GPU", Cell::number(4.76, 2), "%", "published 4.77 %")
        .with("Pods placed", 10_812u64, "", "");
    let report = Report::new("Short", "").with(figures).with(Text::new("", "One.\n\nTwo.\n"));
    expect![[r#"
        Short

        At a glance
         Unallocated GPU     4.76   %   published 4.77 %
         Pods placed       10,812

        One.

        Two.
    "#]]
    .assert_eq(&report.text(80));
}

#[test]
fn json_has_plain_numbers() {
    let mut table = sample::published();
    table.rows.truncate(1);
    table.columns.truncate(3);
    table.rows[0].truncate(3);
    table.rows[0][2] = Cell::number(f64::NAN, 2);
    let mut chart = sample::steps();
    chart.series.truncate(1);
    chart.series[0].points.truncate(2);
    let report = Report::new("Title", "crater simulate").with(table).with(chart);
    expect![[r#"
        {
          "title": "Title",
          "command": "crater simulate",
          "sections": [
            {
              "section": "table",
              "title": "Unallocated GPU at 100 % arrived",
              "columns": [
                {
                  "name": "policy",
                  "unit": ""
                },
                {
                  "name": "unallocated",
                  "unit": "%"
                },
                {
                  "name": "published",
                  "unit": "%"
                }
              ],
              "rows": [
                [
                  "FGD",
                  4.762,
                  null
                ]
              ],
              "note": "Means over the seeds 42 to 51; the published means are of Weng, Yang et al."
            },
            {
              "section": "chart",
              "title": "Jobs waiting while the policy is swapped",
              "summary": "Queue lengths over six hours; the training queue changes its policy twice without a restart.",
              "kind": "step",
              "x": {
                "label": "Time since start",
                "unit": "h"
              },
              "y": {
                "label": "Jobs waiting",
                "unit": ""
              },
              "series": [
                {
                  "name": "training",
                  "points": [
                    [
                      0.0,
                      0.0
                    ],
                    [
                      0.1,
                      146.0
                    ]
                  ]
                }
              ],
              "markers": [
                {
                  "x": 2.0,
                  "label": "binpack → fgd"
                },
                {
                  "x": 4.25,
                  "label": "fgd → shadow-price 0.3.1"
                }
              ]
            }
          ]
        }"#]].assert_eq(&report.json().unwrap());
}
