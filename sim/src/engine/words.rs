//! Text of an exactly known number of tokens.

use rand::Rng;
use rand::rngs::StdRng;

/// Each of these, after a space, is one token of `o200k_base` and of `cl100k_base`, alone and in any
/// sequence (checked with tiktoken), so that a token count made from the text agrees with usage. None
/// needs escaping in JSON. The last four have a character of two bytes, so that text positions in bytes
/// differ from those in characters.
const WORDS: [&str; 64] = [
    " the", " of", " and", " to", " in", " is", " that", " for", " it", " was", " on", " are",
    " as", " with", " they", " be", " at", " this", " have", " from", " or", " had", " by", " not",
    " but", " some", " what", " there", " we", " can", " out", " other", " were", " all", " your",
    " when", " up", " use", " how", " said", " each", " which", " their", " time", " will", " way",
    " about", " many", " then", " them", " write", " would", " like", " these", " her", " long",
    " make", " thing", " see", " him", " café", " año", " più", " été",
];

/// The next token of a seeded text.
pub(crate) fn word(random: &mut StdRng) -> &'static str {
    WORDS[random.random_range(0..WORDS.len())]
}
