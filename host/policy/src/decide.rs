//! The engine's port, answered by a guest.

use crate::abi::{TableIn, lowered, sig};
use crate::configured::Configured;
use crate::fault::cut;
use crater_engine::policy::{Column, Fault, Interface, Manifest, Policy, Scores, Table, Values};
use crater_model::Digest;

/// Bytes that a refusal or the defaults of `admit` may have; both are small,
/// and the margin of every call covers them.
const NOTHING_MORE: usize = 0;

impl Policy for Configured {
    fn manifest(&self) -> &Manifest {
        self.manifest()
    }

    fn digest(&self) -> Digest {
        self.digest()
    }

    fn filter(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Vec<i32>, Fault> {
        self.on_table(Interface::Filter, context, job, nodes)
    }

    fn score(&self, context: &Values, job: &Values, nodes: &Table) -> Result<Scores, Fault> {
        let (context, job, columns) = (lowered(context), lowered(job), lowered(&nodes.columns));
        let table = TableIn { rows: nodes.rows, columns: &columns };
        let rows = rows(nodes);
        let (out,) = self.ask::<sig::OnTable<'_>, sig::ScoreOut>(
            Interface::Score,
            8 * rows,
            (&context, &job, table),
            |(out,)| {
                one_a_row("scores", out.scores.len(), rows)?;
                if out.cards.is_empty() {
                    Ok(())
                } else {
                    one_a_row("cards", out.cards.len(), rows)
                }
            },
        )?;
        Ok(Scores { scores: out.scores, cards: out.cards })
    }

    fn score_groups(
        &self,
        context: &Values,
        job: &Values,
        groups: &Table,
    ) -> Result<Vec<i32>, Fault> {
        self.on_table(Interface::ScoreGroups, context, job, groups)
    }

    fn price(
        &self,
        context: &Values,
        preemptor: &Values,
        units: &Table,
    ) -> Result<Vec<(i32, i32)>, Fault> {
        let (context, job, columns) =
            (lowered(context), lowered(preemptor), lowered(&units.columns));
        let table = TableIn { rows: units.rows, columns: &columns };
        let rows = rows(units);
        let (prices,) = self.ask::<sig::OnTable<'_>, sig::PriceOut>(
            Interface::Preempt,
            8 * rows,
            (&context, &job, table),
            |(prices,)| one_a_row("prices", prices.len(), rows),
        )?;
        Ok(prices)
    }

    fn rank(&self, context: &Values, jobs: &Table) -> Result<Vec<(i32, i32, i32)>, Fault> {
        let (context, columns) = (lowered(context), lowered(&jobs.columns));
        let table = TableIn { rows: jobs.rows, columns: &columns };
        let rows = rows(jobs);
        let (ranks,) = self.ask::<sig::Rank<'_>, sig::RankOut>(
            Interface::Rank,
            12 * rows,
            (&context, table),
            |(ranks,)| one_a_row("ranks", ranks.len(), rows),
        )?;
        Ok(ranks)
    }

    fn admit(&self, context: &Values, job: &Values) -> Result<Result<Values, String>, Fault> {
        let (context, job) = (lowered(context), lowered(job));
        let (answer,) = self.ask::<sig::Admit<'_>, sig::AdmitOut>(
            Interface::Admit,
            NOTHING_MORE,
            (&context, &job),
            |_| Ok(()),
        )?;
        Ok(match answer {
            Ok(values) => {
                Ok(values.into_iter().map(|(id, values)| Column { id, values }).collect())
            }
            Err(text) => Err(cut(&text)),
        })
    }
}

impl Configured {
    fn on_table(
        &self,
        interface: Interface,
        context: &Values,
        job: &Values,
        table: &Table,
    ) -> Result<Vec<i32>, Fault> {
        let (context, job, columns) = (lowered(context), lowered(job), lowered(&table.columns));
        let rows = rows(table);
        let table = TableIn { rows: table.rows, columns: &columns };
        let (out,) = self.ask::<sig::OnTable<'_>, sig::FilterOut>(
            interface,
            4 * rows,
            (&context, &job, table),
            |(out,)| one_a_row("values", out.len(), rows),
        )?;
        Ok(out)
    }
}

fn rows(table: &Table) -> usize {
    table.rows as usize
}

fn one_a_row(what: &str, found: usize, rows: usize) -> Result<(), String> {
    if found == rows {
        return Ok(());
    }
    Err(format!("{found} {what} for {rows} rows; it must answer one a row"))
}
