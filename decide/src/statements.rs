//! The stated parts in one language.

use config::facts::{Fact, FactBasis, FactRow};
use cost::Configuration;

use crate::model::{Statement, Statements};
use crate::view::View;

pub(crate) fn statements(view: &View<'_>) -> Statements {
    let of = |facts: &[Fact]| facts.iter().map(|fact| statement(view, fact)).collect();
    let facts = view.given.facts;
    Statements {
        import_limits: of(&facts.import_limits),
        gateways: of(&facts.gateways),
        agent_runtimes: of(&facts.agent_runtimes),
        observability: of(&facts.observability),
        migration: of(&facts.migration),
    }
}

/// What is stated of a configuration in a place of a table.
pub(crate) fn placed(view: &View<'_>, of: Configuration, row: FactRow) -> Option<Statement> {
    let own = |fact: &&Fact| {
        fact.row == Some(row) && (fact.of.is_empty() || fact.of.iter().any(|one| one == of.id()))
    };
    let fact = view.given.facts.table.iter().find(own)?;
    Some(statement(view, fact))
}

pub(crate) fn statement(view: &View<'_>, fact: &Fact) -> Statement {
    let language = view.words.language();
    Statement {
        topic: language.of(&fact.topic).to_owned(),
        of: fact.of.clone(),
        text: language.of(&fact.text).to_owned(),
        source: fact.source.clone(),
        date: fact.date.to_string(),
        basis: match fact.basis {
            FactBasis::Documented => "documented",
            FactBasis::Reported => "reported",
            FactBasis::Assumed => "assumed",
        }
        .to_owned(),
    }
}
