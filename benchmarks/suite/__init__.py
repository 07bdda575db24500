"""What the programs of this folder share: data, cases, measuring, results, tables."""
