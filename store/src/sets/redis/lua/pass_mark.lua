-- Says how far a shard is settled, unless it is known to be further. Milliseconds are exact in a Lua number.
-- KEYS: the settled times. ARGV: the shard, and the milliseconds since 1970.
local settled, shard, ms = KEYS[1], ARGV[1], ARGV[2]
local known = redis.call('HGET', settled, shard)
if not known or tonumber(known) < tonumber(ms) then
  redis.call('HSET', settled, shard, ms)
end
