-- breaking
-- The link with which a buyer says where a refund should go is called an address request: a claim is a payer's signature.
alter table refund_claims rename to address_requests;
alter index refund_claims_by_store rename to address_requests_by_store;
alter index refund_claims_pkey rename to address_requests_pkey;
alter index refund_claims_token_hash_key rename to address_requests_token_hash_key;
do $$
declare
  name text;
begin
  for name in select conname from pg_constraint
    where conrelid = 'address_requests'::regclass and conname like 'refund\_claims\_%'
  loop
    execute format('alter table address_requests rename constraint %I to %I', name, replace(name, 'refund_claims', 'address_requests'));
  end loop;
end
$$;
update events set type = 'refund.address_updated' where type = 'refund.claimed';
update webhook_endpoints set types = array_replace(types, 'refund.claimed', 'refund.address_updated')
  where 'refund.claimed' = any (types);
