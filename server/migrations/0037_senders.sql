-- Who sent a plain transfer, which for a smart wallet is its owner and not the payer: to find what names an address that is
-- to be erased. A payment by authorization has no sender and is in neither index.
create index credits_by_sender on credits (sender) where sender is not null;
create index archived_credits_by_sender on archived_credits (sender) where sender is not null;
