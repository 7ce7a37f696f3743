//! What jobs and the cluster held and used over time.

use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Path, Query};
use crate::problem::Problem;
use crate::types::rfc3339;
use axum::Json;
use axum::extract::State as Shared;
use crater_model::Time;
use crater_server::collector::METRICS;
use crater_server::now;
use crater_store::{MOST_POINTS, Point, Subject};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which measurements.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Only this: gpu, gpu-memory, cpu, memory, disk-io.
    pub metric: Option<String>,
    /// How far back, such as 1h, which it is without.
    pub range: Option<String>,
    /// At most so many points of each metric, 1 to 2000.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// Measurements over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MetricsView {
    /// A job's identity, or cluster.
    pub subject: String,
    /// From when on, RFC 3339.
    pub from: String,
    /// How often is measured, in seconds.
    pub interval: u64,
    /// By metric.
    pub series: Vec<SeriesView>,
    /// Ask with this for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One metric over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SeriesView {
    /// Which.
    pub metric: String,
    /// Its unit: milli-cards, MiB, milli-cores or MB/s.
    pub unit: String,
    /// Oldest first.
    pub points: Vec<PointView>,
}

/// A measurement, or several rolled up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PointView {
    /// When it begins, RFC 3339.
    pub at: String,
    /// Seconds that it stands for; 0 for a single measurement.
    pub span: u64,
    /// What was promised.
    pub held: u64,
    /// What was used, on average.
    pub used: u64,
    /// The least that was used.
    pub low: u64,
    /// The most.
    pub high: u64,
}

impl PointView {
    fn of(point: &Point) -> Self {
        Self {
            at: rfc3339(point.at),
            span: point.span,
            held: point.held,
            used: point.total / point.n.max(1),
            low: point.low,
            high: point.high,
        }
    }
}

async fn look(
    app: &App,
    subject: Subject,
    name: String,
    which: Which,
) -> Result<MetricsView, Problem> {
    let wanted: Vec<(&str, &str)> = match which.metric.as_deref() {
        None => METRICS.to_vec(),
        Some(text) => {
            let found = METRICS.into_iter().find(|(metric, _)| *metric == text);
            vec![found.ok_or_else(|| {
                let names = METRICS.map(|(metric, _)| metric).join(", ");
                Problem::field("metric", format!("metric: {text:?} is refused: expected {names}"))
            })?]
        }
    };
    let limit = which.limit.unwrap_or(MOST_POINTS);
    if !(1..=MOST_POINTS).contains(&limit) {
        let detail = format!("limit: {limit} is refused: expected 1 to {MOST_POINTS}");
        return Err(Problem::field("limit", detail));
    }
    let range = crater_server::config::span("range", which.range.as_deref().unwrap_or("1h"))?;
    let mut from = Time(now().0.saturating_sub(range.as_millis() as u64));
    if let Some(cursor) = &which.cursor {
        let after: u64 = cursor.parse().map_err(|_| {
            Problem::field("cursor", "cursor: expected what `next` said on the page before")
        })?;
        from = Time(after.saturating_add(1));
    }
    let (series, last) = app
        .look(move |reader| {
            let mut last = None;
            let mut series = vec![];
            for (metric, unit) in wanted {
                let points = reader.points(subject, metric, from, limit)?;
                if points.len() == limit as usize {
                    // All metrics are measured at once, so their pages end together.
                    last = last.max(points.last().map(|point| point.at));
                }
                series.push(SeriesView {
                    metric: metric.to_owned(),
                    unit: unit.to_owned(),
                    points: points.iter().map(PointView::of).collect(),
                });
            }
            Ok((series, last))
        })
        .await?;
    Ok(MetricsView {
        subject: name,
        from: rfc3339(from),
        interval: app.system.interval().as_secs(),
        series,
        next: last.map(|at| at.0.to_string()),
    })
}

/// What a job held and used. Single measurements for some hours, five minutes'
/// means and extremes for the retention.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/metrics", tag = "jobs", params(("id" = String, Path), Which),
    responses((status = 200, body = MetricsView), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub async fn job(
    Shared(app): Shared<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<MetricsView>, Problem> {
    let uid = crate::jobs::job_uid(&id)?;
    crate::jobs::find(&app, &caller, uid).await?;
    Ok(Json(look(&app, Subject::Job(uid), uid.to_string(), which).await?))
}

/// What all jobs together held and used.
#[utoipa::path(get, path = "/api/v1/cluster/metrics", tag = "cluster", params(Which),
    responses((status = 200, body = MetricsView), (status = 422, body = Problem)))]
pub async fn cluster(
    Shared(app): Shared<App>,
    _: Caller,
    Query(which): Query<Which>,
) -> Result<Json<MetricsView>, Problem> {
    Ok(Json(look(&app, Subject::Cluster, "cluster".into(), which).await?))
}
