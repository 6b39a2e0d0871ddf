-- Says that a day's list is complete, if what was filled is still there. KEYS: the day's list, its versions.
-- ARGV: the fill's mark, the sentinel. Both keys must have the mark: if one was lost meanwhile, so was what it held.
local list, versions, mark, sentinel = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local in_list, in_versions = redis.call('ZREM', list, mark), redis.call('HDEL', versions, mark)
if in_list == 0 or in_versions == 0 then
  return 0
end
redis.call('ZADD', list, '-inf', sentinel)
redis.call('HSET', versions, sentinel, 1)
return 1
