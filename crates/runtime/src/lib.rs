//! What every Fairlead process needs around its core: tasks, settings, telemetry, watches, writes, leadership.
