"""What a trial says of lengths beyond an encoding's largest position."""

TABLE_ENDS = "table ends at"
