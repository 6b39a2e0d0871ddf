-- A mark replaces the one before it in its partition: there is one a second.
CREATE INDEX event_log_marks ON event_log (partition) WHERE type = 'relay.mark';
