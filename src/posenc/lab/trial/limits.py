"""The text of cells at lengths beyond an encoding's largest position."""

TABLE_ENDS = "table ends at"
