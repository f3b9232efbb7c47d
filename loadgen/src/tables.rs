//! The tables of a run, made from its record at its end.

use crate::LoadError;
use config::chain::Figure;
use record::rundir::{RunDir, write_calls, write_exchanges, write_looks, write_tools};
use std::collections::HashSet;

/// Writes what is in the record of `cells` as tables, and every exchange.
pub(crate) fn write(run: &RunDir, cells: &HashSet<u32>) -> Result<(), LoadError> {
    let calls = run.stream_calls()?;
    write_calls(run, calls.filter(|call| cells.contains(&call.cell)))?;
    let taps = run.taps()?.into_iter();
    let exchanges: Vec<_> = taps
        .map(|tap| run.stream_exchanges(&tap))
        .collect::<Result<_, _>>()?;
    write_exchanges(run, exchanges.into_iter().flatten())?;
    let tools = run.stream_tools()?;
    let mut tools = tools.filter(|one| cells.contains(&one.cell)).peekable();
    if tools.peek().is_some() {
        write_tools(run, tools)?;
    }
    let looks = run.stream_looks()?;
    let mut looks = looks
        .filter(|look| cells.iter().any(|cell| look.of(*cell)))
        .peekable();
    if looks.peek().is_some() {
        write_looks(run, looks, &Figure::ALL.map(Figure::as_str))?;
    }
    Ok(())
}
