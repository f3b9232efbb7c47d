//! Run directories in, one self-contained page, Markdown and JSON out.
