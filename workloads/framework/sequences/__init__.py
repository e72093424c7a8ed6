"""Networks over sequences: recurrent layers, attention of a decoder, translation and speech."""
