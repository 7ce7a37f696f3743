//! What charts have in common: the canvas, the roles of colours, and the SVG
//! that comes out.
//!
//! `plotters` lays out and draws. It knows fixed colours only, while a page
//! follows its reader's choice of light or dark; so each role is drawn in a
//! stand-in colour, which afterwards becomes a class that the style sheet
//! colours.

use super::Chart;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// Colours that the style sheet has for series.
pub(super) const COLOURS: usize = 8;

/// Units of the drawing for one pixel of the page: the library draws at whole
/// units, and a pixel is too coarse for a smooth line.
pub(super) const UNIT: i32 = 4;

/// The page has each chart twice, and shows the one that suits its width.
pub(super) struct Size {
    /// Class of the drawing.
    pub class: &'static str,
    /// Width in pixels.
    pub width: i32,
    /// Height in pixels of a chart with a vertical axis.
    pub height: i32,
    /// Size of letters in pixels.
    pub font: i32,
    /// Places at which pointing shows values.
    pub places: usize,
}

pub(super) const SIZES: [Size; 2] = [
    Size { class: "wide", width: 880, height: 360, font: 13, places: 80 },
    Size { class: "narrow", width: 380, height: 300, font: 12, places: 40 },
];

/// Roles of colours other than series.
pub(super) const TEXT: RGBColor = RGBColor(1, 1, 1);
pub(super) const STRONG: RGBColor = RGBColor(1, 1, 2);
pub(super) const AXIS: RGBColor = RGBColor(1, 1, 3);
pub(super) const GRID: RGBColor = RGBColor(1, 1, 4);
pub(super) const MARKER: RGBColor = RGBColor(1, 1, 5);

/// The colour of a series.
pub(super) fn series_colour(index: usize) -> RGBColor {
    RGBColor(1, 2, (index % COLOURS) as u8)
}

/// What a drawing can fail with: in memory, nothing.
pub(super) type Failure = Box<dyn std::error::Error>;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Size {
    /// Letters of the usual size in a colour, anchored.
    pub fn text(&self, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
        // The library writes the size divided by 1.24.
        let size = f64::from(self.font * UNIT) * 1.24;
        ("sans-serif", size).into_font().color(&colour).pos(Pos::new(h, v))
    }

    /// About how wide a text is, in units.
    pub fn measure(&self, text: &str) -> i32 {
        let wide = text.chars().filter(|c| u32::from(*c) >= 0x2e80).count();
        let halves = text.chars().count() + wide;
        (halves as f64 * 0.56 * f64::from(self.font * UNIT)) as i32
    }

    /// A text cut to a width in units.
    pub fn cut(&self, text: &str, width: i32) -> String {
        if self.measure(text) <= width {
            return text.to_owned();
        }
        let mut out: String = text.to_owned();
        while !out.is_empty() && self.measure(&out) + self.measure("…") > width {
            out.pop();
        }
        out.trim_end().to_owned() + "…"
    }
}

/// Draws with `draw`, which returns elements to lie over the drawing, and
/// gives the whole as one `svg` element. `number` keeps ids apart.
pub(super) fn svg(
    chart: &Chart,
    size: &Size,
    height: i32,
    number: usize,
    draw: impl FnOnce(&Area<'_>) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let (width, height) = (size.width * UNIT, height * UNIT);
    let mut drawn = String::new();
    let over = {
        let backend = SVGBackend::with_string(&mut drawn, (width as u32, height as u32));
        let area = backend.into_drawing_area();
        let over = draw(&area)?;
        area.present()?;
        over
    };
    let body = drawn.split_once(">\n").map_or("", |(_, body)| body);
    let body = classes(body.trim_end().trim_end_matches("</svg>"));
    let (class, id) = (size.class, format!("chart-{number}-{}", size.class));
    let title = escape(&chart.title);
    let summary = escape(&chart.summary);
    Ok(format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{summary}</desc>\n\
         {body}{over}</svg>"
    ))
}

/// Turns the stand-in colours into classes and drops what the style sheet says.
fn classes(body: &str) -> String {
    let mut out = body
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" font-family=\"sans-serif\"", "");
    let roles =
        [(TEXT, "text"), (STRONG, "strong"), (AXIS, "axis"), (GRID, "grid"), (MARKER, "marker")];
    let series = (0..COLOURS).map(|i| (series_colour(i), format!("s{i}")));
    let roles = roles.into_iter().map(|(colour, name)| (colour, name.to_owned()));
    for (RGBColor(r, g, b), name) in roles.chain(series) {
        for paint in ["stroke", "fill"] {
            let drawn = format!("{paint}=\"#{r:02X}{g:02X}{b:02X}\"");
            out = out.replace(&drawn, &format!("class=\"{paint}-{name}\""));
        }
    }
    out
}

/// Text as it may stand between tags and within quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => {}
            c => out.push(c),
        }
    }
    out
}

/// An invisible area that shows `title` when pointed at, and `marks` with it.
pub(super) fn hint(out: &mut String, area: (i32, i32, i32, i32), marks: &str, title: &str) {
    let (x, y, width, height) = area;
    let title = escape(title);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<g class=\"hint\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\
         {marks}<title>{title}</title></g>"
    );
}
