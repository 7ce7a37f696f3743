//! As one page.

use crate::sample;
use crater_sim::report::{Chart, Report, Series, Text};

#[test]
fn the_page_needs_nothing_beside_it() {
    let page = sample::report().html();
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // Left in the build folder so that it can be looked at.
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    std::fs::write(path, page).unwrap();
}

#[test]
fn every_chart_says_what_it_shows() {
    let page = sample::report().html();
    assert_eq!(page.matches("role=\"img\"").count(), 6, "three charts, wide and narrow");
    assert_eq!(page.matches("<desc id=").count(), 6);
    assert_eq!(page.matches("Data as a table").count(), 3);
    assert!(page.contains("FGD: 4.8 %\nBestFit: 7.1 %"), "values are shown on pointing");
    assert!(page.contains("<b>B</b> 4.25 h: fgd → shadow-price 0.3.1"), "markers are listed");
}

#[test]
fn no_stand_in_colour_is_left() {
    assert!(!sample::report().html().contains("\"#01"));
}

#[test]
fn words_are_never_markup() {
    let evil = "</title></svg><b onclick=\"x\">&";
    let series = vec![Series::new(evil, vec![(0.0, 1.0), (1.0, 2.0)])];
    let chart = Chart { title: evil.into(), summary: evil.into(), series, ..Chart::default() };
    let report = Report::new(evil, evil).with(Text::new(evil, evil)).with(chart);
    let page = report.html();
    assert!(!page.contains("<b onclick") && !page.contains("</svg><b"), "{page}");
}

#[test]
fn equal_reports_give_equal_pages() {
    assert_eq!(sample::report().html(), sample::report().html());
}

#[test]
fn a_chart_without_points_says_so() {
    let report = Report::new("Empty", "").with(Chart::default());
    assert!(report.html().contains("Nothing to draw."));
}
