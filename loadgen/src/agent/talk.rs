//! The conversation of one task: what every further turn says again.

use crate::client::CalledTool;
use crate::prompt::Message;

/// One turn that is over.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) question: String,
    pub(crate) answer: String,
    /// The tool calls of the answer that were followed.
    pub(crate) calls: Vec<CalledTool>,
    /// Their results, by the ids of the calls.
    pub(crate) results: Vec<(String, String)>,
}

/// The turns so far.
#[derive(Debug, Default)]
pub(crate) struct Talk(Vec<Round>);

impl Talk {
    pub(crate) fn add(&mut self, round: Round) {
        self.0.push(round);
    }

    /// The messages that ask `question` after everything that was said.
    pub(crate) fn messages<'a>(
        &'a self,
        system: Option<Message<'a>>,
        question: &'a str,
    ) -> Vec<Message<'a>> {
        let mut all: Vec<Message<'a>> = system.into_iter().collect();
        for round in &self.0 {
            all.push(Message::user(round.question.as_str()));
            all.push(Message::assistant(round.answer.as_str()).calling(&round.calls));
            let results = round.results.iter();
            all.extend(results.map(|(id, text)| Message::tool(id, text)));
        }
        all.push(Message::user(question));
        all
    }
}
