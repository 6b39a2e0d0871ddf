-- Takes sessions off a person's list that were not there, but for those that may just be being opened. KEYS: the list. ARGV:
-- how old they must be (ms), and their hashes.
local old = now_ms() - tonumber(ARGV[1])
for at = 2, #ARGV do
  local created = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if created and tonumber(created) < old then
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
