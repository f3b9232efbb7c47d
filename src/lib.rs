//! A measuring proxy for LLM traffic. Start with `docs/architecture.md`.
