"""What every other package stands on: checks of arguments, identities, strict readers, languages. Imports nothing above."""
