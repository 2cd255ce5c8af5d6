"""The lab: trains small models at one length, scores them at longer ones, and reports which encoding fits which need."""
