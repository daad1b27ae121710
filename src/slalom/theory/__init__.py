"""The source documents' claims as code: models with known answers, and what is said of them."""
