-- Lists a session of a person. The list lasts as long as the longest of its sessions. KEYS: the list. ARGV: the session's
-- hash, when it was opened, when it ends at the latest (ms). Returns how many are listed.
local list, hash, created, ends = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
redis.call('ZADD', list, created, hash)
local left = ends - now_ms()
if redis.call('PTTL', list) < left then
  redis.call('PEXPIRE', list, left)
end
return redis.call('ZCARD', list)
