-- Adds a post to its author's newest. KEYS: the set. ARGV: score, member, members at the most.
-- Room is made before the add: one member too many would turn the set into a skiplist, and never back.
local recent, score, member, max = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('ZSCORE', recent, member) then
  return
end
if redis.call('ZCARD', recent) >= max then
  local last = redis.call('ZRANGE', recent, -1, -1)[1]
  if is_below(id_of(member), id_of(last)) then
    return
  end
  redis.call('ZREMRANGEBYRANK', recent, max - 1, -1)
end
redis.call('ZADD', recent, score, member)
