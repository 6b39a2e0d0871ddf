//! Traces: one call can be followed from the caller through ledger, outbox and event log to the reader.
