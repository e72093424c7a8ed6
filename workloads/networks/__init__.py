"""Networks as frameworks launch them: recurrent, Transformer and MLP layers, kernel by kernel."""
