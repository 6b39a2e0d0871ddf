-- Registers connections, or renews them. KEYS: the online hash of each. ARGV: for how long (ms), the round, then for each
-- its reader, its id and its pod. Returns the places (from 1) of those that were not there until now.
-- A connection remembers the round that made it, so that a call that is sent again, because its answer was lost, does not
-- take what it made itself for a registration that lasted.
local ttl, round = tonumber(ARGV[1]), ARGV[2]
local now = now_ms()
local new = {}
for at, online in ipairs(KEYS) do
  local reader, id, pod = ARGV[3 * at], ARGV[3 * at + 1], ARGV[3 * at + 2]
  local connections = live(redis.call('HGET', online, reader), now)
  local mine
  for _, connection in ipairs(connections) do
    if connection[1] == id then
      mine = connection
    end
  end
  if not mine then
    mine = { id, pod, 0, round }
    connections[#connections + 1] = mine
  end
  mine[2], mine[3] = pod, now + ttl
  if mine[4] == round then
    new[#new + 1] = at
  end
  redis.call('HSET', online, reader, cmsgpack.pack(connections))
  if redis.call('PTTL', online) < ttl then
    redis.call('PEXPIRE', online, ttl)
  end
end
return new
