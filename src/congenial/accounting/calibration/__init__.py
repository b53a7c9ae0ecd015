"""How much noise a final epsilon asks for."""
