-- Sets what authors are to a reader, each unless a newer state is there. KEYS: the reader's states.
-- ARGV: not after (ms), then fields and values. Returns false when it is too late. A reader without a home has no states:
-- whoever builds the home reads them from the ledger.
if now_ms() > tonumber(ARGV[1]) then
  return false
end
if redis.call('HEXISTS', KEYS[1], 'token') == 1 then
  for at = 2, #ARGV, 2 do
    set_state(KEYS[1], ARGV[at], ARGV[at + 1])
  end
end
return 1
