-- Says that a relay is there, forgets those that were not heard of in time, and gives all that are left. The score is the
-- last ping, by this server's clock. KEYS: the members. ARGV: who, and for how many milliseconds a ping counts.
local members, who, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', members, '-inf', now - ttl)
redis.call('ZADD', members, now, who)
redis.call('PEXPIRE', members, ttl)
return redis.call('ZRANGE', members, 0, -1)
