-- Payments that a provider had made up: they leave their place on the chain, and use up what it may report alone.
create index credits_withdrawn on credits (network, orphaned_at) where log_index < 0;
