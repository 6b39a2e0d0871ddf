//! The README's walk-through works as printed.
